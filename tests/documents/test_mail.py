"""Mail: files of one mail, maildirs and mailboxes give decoded documents, whatever senders wrote."""

from __future__ import annotations

import gzip
import warnings
from email import message_from_bytes
from email.mime.application import MIMEApplication
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path
from typing import Any

import pytest
from input_files import full_mask, read_quarantine, texts_of
from sentences import says

from neardup import errors
from neardup.documents import open_corpus
from neardup.documents.mail import MAX_PARTS

BODY = "The board of the harbour voted on Monday to widen the canal.\n"


def mail_of(body: str = BODY, key: str | None = "<1@a.org>", **fields: str) -> bytes:
    header = {"From": "Ann <ann@a.org>", "To": "list@b.org", "Subject": "The canal"}
    header |= {} if key is None else {"Message-ID": key}
    header |= {"Date": "Mon, 06 May 2024 10:00:00 +0200"}
    header |= {name.replace("_", "-"): value for name, value in fields.items()}
    return "".join(f"{name}: {value}\n" for name, value in header.items()).encode() + b"\n" + body.encode()


def mailbox_of(*mails: bytes, line: bytes = b"From ann@a.org Mon May  6 10:00:00 2024") -> bytes:
    return b"".join(line + b"\n" + mail + b"\n" for mail in mails)


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(*paths: Path, **options: Any) -> tuple[list[dict[str, Any]], dict[str, int]]:
    with open_corpus(paths, **options) as corpus:
        texts = texts_of(corpus)
        rows = [row for batch in corpus.rescan() for row in batch.rows.tolist()]
        documents = corpus.take(rows).to_pylist()
        assert [one["text"] for one in documents] == texts
        return documents, dict(corpus.skipped)


def read_mail(folder: Path, data: bytes) -> dict[str, Any]:
    return read(written(folder, "m.eml", data))[0][0]


def test_a_mail_is_a_document_with_decoded_fields(tmp_path: Path) -> None:
    data = mail_of(
        Subject="=?utf-8?Q?Gr=C3=BC=C3=9Fe?= aus\n =?iso-8859-1?q?K=F6ln?=",
        From="=?utf-8?b?SsO8cmdlbg==?= <j@a.org>",
        List_Id="Harbour list <harbour.b.org>",
    )
    assert read_mail(tmp_path, data) == {
        "id": "1@a.org",
        "date": "2024-05-06T10:00:00+02:00",
        "from": "Jürgen <j@a.org>",
        "to": "list@b.org",
        "subject": "Grüße aus Köln",
        "list_id": "Harbour list <harbour.b.org>",
        "text": BODY.strip("\n"),
    }


@pytest.mark.parametrize(
    ("subject", "decoded"),
    [
        (b"plain words", "plain words"),
        ("Grüße".encode(), "Grüße"),
        ("Grüße".encode("latin-1"), "Grüße"),
        (b"=?utf-8?q?a?= =?utf-8?q?b?= c", "ab c"),
        (b"=?utf-8?b?R3LDvA==?=\n\t=?utf-8?b?w59l?=", "Grüße"),
        (b"=?utf-8?b?R3LD?= =?utf-8?b?vMOfZQ==?=", "Grüße"),
        (b"=?utf-8?q?not closed", "=?utf-8?q?not closed"),
        (b"=?nosuch?q?Gr=C3=BC?=", "Grü"),
        (b"=?utf-8?b?====?=", ""),
        (b"=?gb2312?B?1tDOxA==?=", "中文"),
        (b"=?iso-2022-jp?B?GyRCJF4kXxsoQg==?=", "まみ"),
        (b"two\n lines", "two lines"),
    ],
)
def test_header_fields_are_decoded_however_they_are_written(tmp_path: Path, subject: bytes, decoded: str) -> None:
    data = mail_of().replace(b"Subject: The canal", b"Subject: " + subject)
    assert read_mail(tmp_path, data)["subject"] == decoded


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        ("text/plain; charset=koi8-r", "koi8-r"),
        ("TEXT/PLAIN; charset*=utf-8''koi8-r", "koi8-r"),
        ("text/plain; charset=us-ascii", "utf-8"),
        ("text/plain; charset=nosuch", "utf-8"),
        ("text/plain; charset=", "utf-8"),
        ("text/plain", "utf-8"),
        ("nonsense", "utf-8"),
        ("text/html; charset=utf-8", "utf-8"),
    ],
)
def test_bodies_are_decoded_by_their_charset(tmp_path: Path, kind: str, encoding: str) -> None:
    body = "<p>роза<br></p>" if "html" in kind else "роза"
    assert read_mail(tmp_path, mail_of("", Content_Type=kind) + body.encode(encoding))["text"] == "роза"


def multipart(kind: str, *parts: Any) -> bytes:
    mail = MIMEMultipart(kind)
    mail["Message-ID"], mail["From"] = "<m@a.org>", "a@a.org"
    for part in parts:
        mail.attach(part)
    return mail.as_bytes()


def test_of_alternatives_the_plain_text_counts_and_attachments_do_not(tmp_path: Path) -> None:
    page, plain = MIMEText("<p>as <b>page</b>", "html"), MIMEText("as words")
    attached = MIMEText("attached words")
    attached["Content-Disposition"] = "attachment; filename=a.txt"
    inner = MIMEMultipart("alternative")
    inner.attach(page)
    inner.attach(plain)
    data = multipart("mixed", inner, attached, MIMEApplication(b"\0\1"), MIMEText("a footer"))
    [document], skipped = read(written(tmp_path, "m.eml", data))
    assert document["text"] == "as words\na footer"
    assert skipped == {"attachment": 2}
    assert read_mail(tmp_path, multipart("alternative", MIMEText(" \n"), page))["text"] == "as page"
    assert read_mail(tmp_path, multipart("alternative", page))["text"] == "as page"
    forwarded = MIMEMessage(message_from_bytes(mail_of()))
    assert read_mail(tmp_path, multipart("mixed", plain, forwarded))["text"] == f"as words\n{BODY}".strip()


def test_one_mail_in_five_lists_is_one_document(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"list{n}.mbox", mailbox_of(mail_of(Subject=f"[list{n}] canal"))) for n in range(3)]
    paths += [written(tmp_path, "m.eml", mail_of()), written(tmp_path, "n.eml", mail_of("Other words entirely.\n"))]
    with open_corpus(paths) as corpus:
        ids = [key for batch in corpus.scan() for key in batch.ids.to_pylist()]
        assert ids == ["1@a.org", *(f"1@a.org~{n}" for n in range(2, 6))]
        assert sum(corpus.skipped.values()) == 4
        assert len(set(texts_of(corpus))) == 2
    with open_corpus(paths, ids="file+id") as corpus:
        ids = [key for batch in corpus.scan() for key in batch.ids.to_pylist()]
        assert ids == [f"{path}:1@a.org" for path in paths]


def test_a_mailbox_without_times_is_cut_at_blank_lines_before_usual_fields(tmp_path: Path) -> None:
    mails = [mail_of("one\n"), mail_of("words\nFrom here\nSubject: none\n\nFrom here\non: all\n", "<2@a.org>")]
    documents, _ = read(written(tmp_path, "a.mbox", mailbox_of(*mails, line=b"From nobody")))
    assert [one["text"] for one in documents] == ["one", "words\nFrom here\nSubject: none\n\nFrom here\non: all"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_mailbox_is_cut_where_its_mails_begin(tmp_path: Path, end: bytes) -> None:
    bodies = ["From the start, this is text.\n\nFrom here: on\n", ">From me at 10:00 in 2024\n", "", "last"]
    mails = [mail_of(body, f"<{n}@a.org>") for n, body in enumerate(bodies)]
    data = mailbox_of(*mails).replace(b"\n", end)
    documents, _ = read(written(tmp_path, "a.mbox", data))
    assert [one["id"] for one in documents] == [f"{n}@a.org" for n in range(4)]
    assert documents[0]["text"] == bodies[0].strip()
    assert documents[1]["text"] == "From me at 10:00 in 2024"
    assert documents[3]["text"] == "last"


@pytest.mark.parametrize(
    "line",
    [
        b"From ann at a.org  Mon May  6 10:00:00 2024",
        b"From - Mon May 06 10:00:00 2024",
        b"From MAILER-DAEMON Mon May  6 10:00:00 2024 +0200",
    ],
)
@pytest.mark.parametrize("name", ["2024-May.txt", "2024-May.txt.gz", "box", "box.unknown"])
def test_a_mailbox_is_recognized_by_its_first_line_and_named(tmp_path: Path, name: str, line: bytes) -> None:
    data = mailbox_of(mail_of("one"), mail_of("two", "<2@a.org>"), line=line)
    path = written(tmp_path, name, gzip.compress(data) if name.endswith(".gz") else data)
    with open_corpus([path]) as corpus:
        assert texts_of(corpus) == ["one", "two"]
        assert says(" ".join(corpus.notes), name, "begins as a mailbox")


def test_a_text_that_only_begins_with_from_is_a_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", b"From Monday at 10:00 in 2024\nwe shall meet, all of us\n")
    assert read(path)[0][0]["id"] == str(path)


def test_mailboxes_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neardup.documents import streams

    monkeypatch.setattr(streams, "BLOCK", 300)
    mails = [mail_of(f"text {n} " + "word " * (n % 90), f"<{n}@a.org>") for n in range(200)]
    documents, _ = read(written(tmp_path, "a.mbox", mailbox_of(*mails)))
    assert [one["id"] for one in documents] == [f"{n}@a.org" for n in range(200)]


def test_a_maildir_is_a_folder_of_mails(tmp_path: Path) -> None:
    folder = tmp_path / "Mail"
    for place, name in [
        ("cur", "1700000001.M1P1.host,S=9:2,S"),
        ("new", "1700000002.M1P1.host"),
        ("tmp", "1700000003.x"),
    ]:
        written(folder, f"{place}/{name}", mail_of(place, f"<{place}@a.org>"))
    written(folder, "dovecot.index", b"\0")
    assert [one["id"] for one in read(folder)[0]] == ["cur@a.org", "new@a.org"]
    assert [one["id"] for one in read(folder / "cur")[0]] == ["cur@a.org"]
    assert [one["id"] for one in read(next((folder / "cur").iterdir()))[0]] == ["cur@a.org"]


@pytest.mark.parametrize(
    "date",
    ["yesterday", "Mon, 99 May 2024 10:00:00 +0200", "Mon, 06 May 99999999999999 10:00:00", "\0", "1" * 5000],
)
def test_a_date_that_cannot_be_read_is_counted(tmp_path: Path, date: str) -> None:
    [document], skipped = read(written(tmp_path, "m.eml", mail_of(Date=date)))
    assert document["date"] is None
    assert skipped == {"unreadable date": 1}


def test_a_mail_without_an_id_is_named_by_its_file_and_number(tmp_path: Path) -> None:
    path = written(tmp_path, "m.eml", mail_of(key=None))
    box = written(tmp_path, "a.mbox", mailbox_of(mail_of(key=None), mail_of(key="<>")))
    assert [one["id"] for one in read(path, box)[0]] == [str(path), f"{box}:1", f"{box}:2"]
    assert read_mail(tmp_path, mail_of(key="  <a b@c>  "))["id"] == "a b@c"
    assert read_mail(tmp_path, mail_of(key="<1@a.org> (added by x)"))["id"] == "1@a.org"


NESTED = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(500))
BROKEN = {
    "empty": b"",
    "no header": b"Words, and no header\n",
    "bytes": bytes(range(256)) * 9,
    "deep": b"From: a@a.org\n" + NESTED,
    "many": b"From: a@a.org\n" + b"Content-Type: multipart/mixed\n\n" * (MAX_PARTS + 2),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_mail_is_rejected(tmp_path: Path, name: str) -> None:
    paths = [written(tmp_path, "bad.eml", BROKEN[name]), written(tmp_path, "good.eml", mail_of())]
    with open_corpus(paths, quarantine=str(tmp_path / "q.jsonl"), allow_torn=True) as corpus:
        assert texts_of(corpus) == [BODY.strip()]
        assert corpus.rejected.total == 1
        assert "bad.eml" in corpus.rejected.examples[0]
    assert [Path(entry["file"]).name for entry in read_quarantine(tmp_path / "q.jsonl")] == ["bad.eml"]
    with pytest.raises(errors.BrokenRecord), open_corpus(paths, strict=True) as corpus:
        texts_of(corpus)


HOSTILE = {
    "encoded words": mail_of(Subject="=?a?q?" * 50_000),
    "words": mail_of(Subject="=?utf-8?q?a?= " * 50_000),
    "question marks": mail_of(Subject="?=" * 100_000),
    "addresses": mail_of(To="a@b.org, " * 50_000),
    "comments": mail_of(From="(" * 100_000, Date="(" * 100_000, Content_Type="(" * 100_000),
    "parameters": mail_of(Content_Type="text/plain; " + "".join(f"a*{n}=b; " for n in range(100_000))),
    "quotes": mail_of(Content_Type='text/plain; a="' + '\\"' * 50_000),
    "boundaries": mail_of("--b\n" * 100_000, Content_Type="multipart/mixed; boundary=b"),
    "fields": b"".join(b"X-%d: y\n" % n for n in range(50_000)) + mail_of(),
    "base64": mail_of("=" * 500_000, Content_Transfer_Encoding="base64"),
    "uuencode": mail_of("begin 644 a\n" + "#\n" * 100_000, Content_Transfer_Encoding="x-uuencode"),
    "from lines": b"From a 10:00 2024\n" * 50_000 + mail_of(),
    "long from line": b"From " + b"1:11 " * 100_000 + b"\n" + mail_of(),
    "long field": b"\nFrom a 10:00 2024\n" + b"a" * 500_000 + mail_of(),
    "x field": b"\nFrom a\nX-" + b"a" * 500_000 + mail_of(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mails_take_linear_time(tmp_path: Path, name: str) -> None:
    paths = [written(tmp_path, f"m{suffix}", HOSTILE[name]) for suffix in (".eml", ".mbox", ".txt")]
    with open_corpus([*paths, written(tmp_path, "n.eml", mail_of())], allow_torn=True) as corpus:
        assert len(texts_of(corpus)) + corpus.rejected.total >= 3


def test_a_torn_mailbox_is_said(tmp_path: Path) -> None:
    words = ["".join(chr(97 + (n * k * k) % 26) for k in range(400)) for n in range(50)]
    data = gzip.compress(mailbox_of(*(mail_of(f"text {n} {words[n]}\n", f"<{n}@a.org>") for n in range(50))), 1)
    with open_corpus([written(tmp_path, "a.mbox.gz", data[:-200])]) as corpus:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            texts = texts_of(corpus)
        assert [torn.rows_read for torn in corpus.torn_files] == [len(texts)]
        assert texts[0].startswith("text 0")


def test_kept_mails_are_copied_as_files_or_rows(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{n}.eml", mail_of(f"text {n}", f"<{n}@a.org>")) for n in range(3)]
    with open_corpus(paths) as corpus:
        texts_of(corpus)
        keep = full_mask(corpus)
        keep[1] = False
        for suffix in (".jsonl", ".csv", ".parquet"):
            assert corpus.copy(keep, str(tmp_path / f"kept{suffix}")) == 2
        assert corpus.copy(keep, str(tmp_path / "kept")) == 2
        assert {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == {
            path.name: path.read_bytes() for path in (paths[0], paths[2])
        }


@pytest.mark.parametrize("name", ["out.mbox", "out.warc.gz", "out.eml"])
def test_no_mail_and_no_crawl_is_written(tmp_path: Path, name: str) -> None:
    with open_corpus([written(tmp_path, "a.mbox", mailbox_of(mail_of()))]) as corpus:
        texts_of(corpus)
        with pytest.raises(errors.OutputError) as caught:
            corpus.copy(full_mask(corpus), str(tmp_path / name))
        assert says(str(caught.value), name, "read and not written", ".jsonl")
        with pytest.raises(errors.OutputError, match="mailboxes are read and not written"):
            corpus.copy(full_mask(corpus), f"{tmp_path}/out/")
