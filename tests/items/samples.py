"""Small files of every kind, as agencies and sites write them, and their items."""

from __future__ import annotations

from neardup.items.formats import parse_items
from neardup.items.item import Item, Items

RSS2 = """<?xml version="1.0" encoding="UTF-8"?>
<?xml-stylesheet type="text/xsl" href="/feed.xsl"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/">
<channel>
  <title>The Harbour Courier</title>
  <link>https://courier.example/</link>
  <description>All that floats</description>
  <atom:link href="https://courier.example/feed" rel="self" type="application/rss+xml"/>
  <item>
    <title>Dredging &amp; digging: the harbour grows</title>
    <link>https://courier.example/1</link>
    <guid isPermaLink="false">courier-1</guid>
    <pubDate>Thu, 21 Mar 2019 12:30:00 +0100</pubDate>
    <description>Short.</description>
    <content:encoded><![CDATA[<p>The harbour <b>grow</b>s by a tenth.</p>
      <p>So said the master &mdash; twice.</p>]]></content:encoded>
    <media:title>A picture</media:title>
  </item>
  <item>
    <title>أسعار النفط ترتفع</title>
    <link>https://courier.example/2</link>
    <guid>https://courier.example/2</guid>
    <dc:date>2019-03-21T13:00:00Z</dc:date>
    <description>&lt;p&gt;ارتفعت أسعار النفط يوم الخميس.&lt;/p&gt;</description>
  </item>
  <item>
    <description>中国股市周四收高 📈</description>
    <pubDate>nonsense</pubDate>
  </item>
</channel>
</rss>
"""

RSS1 = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
  xmlns:dc="http://purl.org/dc/elements/1.1/">
 <channel rdf:about="https://old.example/rss"><title>Old</title><link>https://old.example</link>
  <items><rdf:Seq><rdf:li rdf:resource="https://old.example/a"/></rdf:Seq></items></channel>
 <item rdf:about="https://old.example/a"><title>Alpha</title><link>https://old.example/a</link>
  <description>The first letter.</description><dc:date>2001-02-03T04:05:06+00:00</dc:date></item>
</rdf:RDF>
"""

RSS091 = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.example/rss-0.91.dtd">
<rss version="0.91"><channel><title>Caf\xe9</title>
<item><title>Caf\xe9 ferm&eacute;</title><link>http://x.example/1</link>
 <description>Le caf\xe9 est ferm\xe9.</description></item>
</channel></rss>
"""

ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title>Valley Tribune</title>
  <id>urn:feed</id>
  <updated>2020-05-06T07:08:09Z</updated>
  <entry>
    <title type="html">Rain &amp;amp; &lt;em&gt;snow&lt;/em&gt;</title>
    <id>urn:uuid:1</id>
    <link rel="self" href="https://valley.example/1.atom"/>
    <link href="https://valley.example/1"/>
    <published>2020-05-06T05:00:00Z</published>
    <updated>2020-05-06T07:00:00.5+02:00</updated>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>It r<i>ain</i>ed.</p><p>It snowed.</p>
      <script>alert('no')</script></div></content>
  </entry>
  <entry>
    <title>Plain 1 &lt; 2</title>
    <id>urn:uuid:2</id>
    <summary type="html">&lt;p&gt;Only a summary.&lt;/p&gt;</summary>
    <updated>2020-05-07T00:00:00Z</updated>
  </entry>
</feed>
"""

NITF = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE nitf SYSTEM "http://www.nitf.example/nitf-3-3.dtd">
<nitf version="-//IPTC//DTD NITF 3.3//EN">
 <head><title>Tide</title>
  <docdata><doc-id regsrc="AP" id-string="AP-0815"/><date.issue norm="20190321T123000Z"/></docdata></head>
 <body>
  <body.head><hedline><hl1>High tide at noon</hl1><hl2>And again at midnight</hl2></hedline>
   <byline>By A Reporter</byline><dateline><location>HARBOUR</location></dateline></body.head>
  <body.content>
   <media media-type="image"><media-caption><p>A picture of water.</p></media-caption></media>
   <block><p>The tide came at <em>noon</em>, said <person>Ann</person>.</p><p>It left at six.</p></block>
  </body.content>
 </body>
</nitf>
"""

NEWSML1 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE NewsML PUBLIC "urn:newsml:iptc.org:20021018:NewsMLv1.1:1" "http://www.iptc.example/NewsML_1.1.dtd">
<NewsML><NewsEnvelope><DateAndTime>20030401T120000+0000</DateAndTime></NewsEnvelope>
<NewsItem>
 <Identification><NewsIdentifier><ProviderId>reuters.com</ProviderId><DateId>20030401</DateId><NewsItemId>N1</NewsItemId>
  <RevisionId PreviousRevision="0" Update="N">1</RevisionId>
  <PublicIdentifier>urn:newsml:reuters.com:20030401:N1:1</PublicIdentifier></NewsIdentifier></Identification>
 <NewsManagement><NewsItemType FormalName="News"/><FirstCreated>20030401T100000+0000</FirstCreated>
  <ThisRevisionCreated>20030401T110000+0000</ThisRevisionCreated><Status FormalName="Usable"/></NewsManagement>
 <NewsComponent><NewsLines><HeadLine>Gold rises</HeadLine></NewsLines>
  <ContentItem><DataContent><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head>
   <body><p>Gold rose.</p><p>Silver fell.</p></body></html></DataContent></ContentItem></NewsComponent>
</NewsItem></NewsML>
"""

_G2_ITEM = """<newsItem xmlns="http://iptc.org/std/nar/2006-10-01/" guid="tag:reuters.example,{number}" version="2"
  standard="NewsML-G2">
 <catalogRef href="http://www.iptc.example/catalog.xml"/>
 <itemMeta><itemClass qcode="ninat:text"/><provider literal="r"/>
  <versionCreated>2012-11-0{number}T12:00:00Z</versionCreated>
  <firstCreated>2012-11-01T08:00:00Z</firstCreated><pubStatus qcode="stat:usable"/></itemMeta>
 <contentMeta><contentCreated>2012-10-01T00:00:00Z</contentCreated><headline>{headline}</headline></contentMeta>
 <contentSet><inlineXML contenttype="application/xhtml+xml">
  <html xmlns="http://www.w3.org/1999/xhtml"><head><title>no</title></head>
   <body><p>{body}</p><p>The end.</p></body></html>
 </inlineXML></contentSet>
</newsItem>"""

G2_MESSAGE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<newsMessage xmlns="http://iptc.org/std/nar/2006-10-01/">'
    "<header><sent>2012-11-09T00:00:00Z</sent></header><itemSet>"
    + _G2_ITEM.format(number=1, headline="One", body="The first body.")
    + _G2_ITEM.format(number=2, headline="二", body="第二条新闻。")
    + '<packageItem guid="p"><groupSet root="r"><group id="r"/></groupSet></packageItem></itemSet></newsMessage>'
)

JSON_ONE = '{"id": 7, "title": "Seven", "body": "The seventh \\ud83d\\ude00", "published": "2020-01-01", "url": "https://x.example/7"}\n'

JSON_LIST = '[\n  {"guid": "a", "text": "erste"},\n  {"guid": "b", "content": "zweite", "time": 1577836800000}\n]\n'

JSON_LINES = (
    '{"id": "1", "text": "one line", "timestamp": 1577836800}\n'
    '{"id": "2", "text": "\\u0627\\u0644 نفط", "date": "2020-01-01T00:00:00+00:00"}\n'
    '{"id": "3", "text": "three 📈"}\n'
)

#: name -> (content, kind, for each item: key, text, title, timestamp, link)
SAMPLES: dict[str, tuple[bytes, str, list[tuple[str, str, str, float | None, str]]]] = {
    "courier.xml": (
        RSS2.encode(),
        "rss",
        [
            (
                "courier-1",
                "Dredging & digging: the harbour grows\nThe harbour grows by a tenth.\nSo said the master — twice.",
                "Dredging & digging: the harbour grows",
                1553167800.0,
                "https://courier.example/1",
            ),
            (
                "https://courier.example/2",
                "أسعار النفط ترتفع\nارتفعت أسعار النفط يوم الخميس.",
                "أسعار النفط ترتفع",
                1553173200.0,
                "https://courier.example/2",
            ),
            ("", "中国股市周四收高 📈", "", None, ""),
        ],
    ),
    "old.rdf": (
        RSS1.encode(),
        "rss",
        [("https://old.example/a", "Alpha\nThe first letter.", "Alpha", 981173106.0, "https://old.example/a")],
    ),
    "netscape": (
        RSS091.encode("latin-1"),
        "rss",
        [("", "Café fermé\nLe café est fermé.", "Café fermé", None, "http://x.example/1")],
    ),
    "valley.atom": (
        ATOM.encode(),
        "atom",
        [
            (
                "urn:uuid:1",
                "Rain & snow\nIt rained.\nIt snowed.",
                "Rain & snow",
                1588741200.5,
                "https://valley.example/1",
            ),
            ("urn:uuid:2", "Plain 1 < 2\nOnly a summary.", "Plain 1 < 2", 1588809600.0, ""),
        ],
    ),
    "tide.nitf": (
        NITF.encode(),
        "nitf",
        [
            (
                "AP-0815",
                "High tide at noon\nThe tide came at noon, said Ann.\nIt left at six.",
                "High tide at noon",
                1553171400.0,
                "",
            )
        ],
    ),
    "gold.xml": (
        NEWSML1.encode(),
        "newsml",
        [
            (
                "urn:newsml:reuters.com:20030401:N1:1",
                "Gold rises\nGold rose.\nSilver fell.",
                "Gold rises",
                1049194800.0,
                "",
            )
        ],
    ),
    "message.xml": (
        G2_MESSAGE.encode(),
        "newsml-g2",
        [
            ("tag:reuters.example,1", "One\nThe first body.\nThe end.", "One", 1351771200.0, ""),
            ("tag:reuters.example,2", "二\n第二条新闻。\nThe end.", "二", 1351857600.0, ""),
        ],
    ),
    "seven.json": (
        JSON_ONE.encode(),
        "json",
        [("7", "Seven\nThe seventh 😀", "Seven", 1577836800.0, "https://x.example/7")],
    ),
    "list.json": (JSON_LIST.encode(), "json", [("a", "erste", "", None, ""), ("b", "zweite", "", 1577836800.0, "")]),
    "lines.jsonl": (
        JSON_LINES.encode(),
        "jsonl",
        [
            ("1", "one line", "", 1577836800.0, ""),
            ("2", "ال نفط", "", 1577836800.0, ""),
            ("3", "three 📈", "", None, ""),
        ],
    ),
    "plain.txt": ("ein Text, 新闻 📰\n".encode(), "text", [("", "ein Text, 新闻 📰\n", "", None, "")]),
}


def read_file(name: str, data: bytes | str) -> tuple[Items, list[Item]]:
    found = parse_items(name, data.encode() if isinstance(data, str) else data)
    return found, list(found.items)


def item_fields(items: list[Item]) -> list[tuple[str, str, str, float | None, str]]:
    return [
        (item.key, item.text, item.title, item.timestamp.timestamp() if item.timestamp else None, item.link)
        for item in items
    ]
