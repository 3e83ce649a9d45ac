-- What wrk sends to the service: documents of some 0.8 KB, a third of which repeat an earlier one with a word more.
-- wrk -s serve.lua URL -- DOCUMENTS PREFIX QUERY PAUSE
-- Before each request a connection pauses: up to twice PAUSE ms, by chance.
local words, made, count = {}, {}, 0
local batch, prefix, query

function init(args)
  batch, prefix, query = tonumber(args[1]), args[2], args[3] or ""
  local pause = tonumber(args[4] or "0")
  if pause > 0 then delay = function() return math.random(0, 2 * pause) end end
  math.randomseed(#prefix + string.byte(prefix, -1))
  for i = 1, 4000 do words[i] = string.format("w%x", math.random(1, 1000000)) end
  wrk.headers["Content-Type"] = "application/json"
end

local function text()
  if #made > 10 and math.random() < 0.33 then return made[math.random(#made)] .. " again" end
  local out = {}
  for i = 1, 125 do out[i] = words[math.random(#words)] end
  local one = table.concat(out, " ")
  made[#made < 1000 and #made + 1 or math.random(1000)] = one
  return one
end

function request()
  local documents = {}
  for i = 1, batch do
    count = count + 1
    documents[i] = string.format('{"id":"%s-%d","text":"%s"}', prefix, count, text())
  end
  return wrk.format("POST", "/v1/indexes/main/documents" .. query, nil, '{"documents":[' .. table.concat(documents, ",") .. ']}')
end

function done(summary, latency, requests)
  local wrong = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format('\n{"requests":%d,"seconds":%.3f,"median_ms":%.2f,"p99_ms":%.2f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.errors.status, wrong))
end
