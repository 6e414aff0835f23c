"""What the doctor mends: changes to look at first, applied as one commit, and taken back like any other."""

from __future__ import annotations

from pathlib import Path

from conversations import drawn, reply, said
from conversations import memory as told
from folders import index_of, log_of, memory, on_disk, visible
from hypothesis import given
from hypothesis import strategies as st

from mdmemory import Config
from mdmemory.care import history
from mdmemory.care.doctor import KINDS, Finding, examine, fix, fixes
from mdmemory.care.doctor.fixes import quoted
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.changes import Delete, Replace
from mdmemory.files.memory_file import parse
from mdmemory.files.strict_yaml import quote
from mdmemory.folder.mounted_folder import MountedFolder
from mdmemory.folder.mounts import Mount, Part
from mdmemory.folder.proposals import list_proposals, reject

A = memory("Alpha", "the first")
PR = b"\xef\xbb\xbf---\r\n# of mine\r\nname: B\r\ndescription: Tracking PR #762\r\ntype: Project\r\nkept: yes\r\n---\r\n\r\nOpen."
MENDED = PR.replace(b"Tracking PR #762", b'"Tracking PR #762"').replace(b"Project", b"project")


async def test_a_comment_that_was_none_and_a_type_in_capitals(tmp_path: Path) -> None:
    """F1, F4: the value is quoted with all of its line and the type is written as it should be; no other byte changes."""
    folder = on_disk(tmp_path, {"b.md": PR, "MEMORY.md": "- [B](b.md) — Tracking PR\n"})
    findings = await examine(folder)
    assert {finding.code for finding in findings if finding.is_fixable} == {"yaml-comment", "unknown-type"}
    (change,) = await fixes(folder, findings)
    assert isinstance(change, Replace) and change.data == MENDED and visible(tmp_path)["b.md"] == PR
    assert {finding.code for finding in await fix(folder, findings)} == {"yaml-comment", "unknown-type"}
    assert visible(tmp_path)["b.md"] == MENDED and "Tracking PR #762" in index_of(tmp_path)
    assert await fix(folder, findings) == [] and [each for each in await examine(folder) if each.is_fixable] == []


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\ufeff"), min_size=1, max_size=30))
def test_what_is_quoted_is_all_of_the_line(rest: str) -> None:
    """F1: whatever stands behind ` #`, the value is the whole line then, or nothing is changed."""
    data = f"---\nname: B\ndescription: PR #{rest}\ntype: user\n---\n\nBody.\n".encode()
    finding = Finding("yaml-comment", "b.md", 3, "")
    try:
        changed = quoted(on_disk(Path("/nonexistent")), "b.md", data, finding)
    except InvalidMemoryFile:
        return
    assert parse("b.md", changed).header.description == f"PR #{rest}".strip()
    assert changed == data.replace(f"PR #{rest.rstrip()}".encode(), quote(f"PR #{rest}".rstrip()).encode(), 1)


async def test_a_value_that_begins_with_a_hash(tmp_path: Path) -> None:
    """F1: of `name: #general`, which is an empty value to YAML, nothing but the quotes is new."""
    data = b"\xef\xbb\xbf---\r\nname: #general  \r\ndescription:   #7 is open\r\ntype: user\r\n---\r\nBody."
    folder = on_disk(tmp_path, {"b.md": data})
    await fix(folder, await examine(folder))
    assert visible(tmp_path)["b.md"] == data.replace(b"#general", b'"#general"').replace(b"#7 is open", b'"#7 is open"')
    assert [each for each in await examine(folder) if each.is_fixable] == []


async def test_a_copy_with_the_same_bytes_is_deleted(tmp_path: Path) -> None:
    """N6: only where a sync program's copy says nothing else; a person's edit of either, made meanwhile, saves it."""
    same, other = "a (conflicted copy 2024-01-05).md", "b (conflicted copy 2024-01-05).md"
    folder = on_disk(tmp_path, {"a.md": A, same: A, "b.md": A + b"B\n", other: A + b"C\n"})
    findings = [finding for finding in await examine(folder) if finding.code == "conflicted-copy"]
    assert [(finding.path, finding.is_fixable) for finding in findings] == [(same, True), (other, False)]
    assert [change.path for change in await fixes(folder, findings) if isinstance(change, Delete)] == [same]
    (tmp_path / "a.md").write_bytes(A + b"changed\n")
    assert await fix(folder, findings) == [] and (tmp_path / same).exists()
    (tmp_path / "a.md").write_bytes(A)
    assert [finding.path for finding in await fix(folder, findings)] == [same]
    assert not (tmp_path / same).exists() and (tmp_path / other).exists()


async def test_a_copy_that_goes_forgets_nothing(tmp_path: Path) -> None:
    """D3: its file still says it all, so neither the name nor the messages it was drawn from are forgotten."""
    data = memory("Home", "where the user lives", source="s1#m1")
    folder = on_disk(tmp_path, {"home.md": data, "home (conflicted copy 2024-01-05).md": data})
    assert "conflicted-copy" in {finding.code for finding in await fix(folder, await examine(folder))}
    assert "home.md" in visible(tmp_path) and not (tmp_path / ".mdmemory/tombstones").exists()
    update = told("Home", "Lives in Berlin.", path="home.md", action="update")
    await drawn(folder, said("I moved to Berlin.", "Noted!", first=3), reply({**update, "sources": [1]}))
    assert b"Berlin" in visible(tmp_path)["home.md"]


async def test_the_index_is_mended_as_a_whole(tmp_path: Path) -> None:
    """I3: whichever of its findings is chosen, and only when one is."""
    text = "# Mine\n\n- [Gone](gone.md) — was here\n- [Gone too](too.md) — was here\n"
    folder = on_disk(tmp_path, {"a.md": A, "b.md": PR, "MEMORY.md": text})
    findings = await examine(folder)
    of_file = [finding for finding in findings if finding.path == "b.md" and finding.code != "no-pointer"]
    assert [change.path for change in await fixes(folder, of_file)] == ["b.md"]
    await fix(folder, [finding for finding in findings if finding.message.count("Gone too")])
    assert index_of(tmp_path) == "# Mine\n\n- [Alpha](a.md) — the first\n- [B](b.md) — Tracking PR\n"


async def test_all_that_is_mended_is_one_commit_and_can_be_undone(tmp_path: Path) -> None:
    """M3: one line of the log by the doctor, and an undo gives files their bytes back and the index its line."""
    folder = on_disk(tmp_path, {"a.md": A, "b.md": PR, "MEMORY.md": "- [Gone](gone.md) — was here\n"})
    before = visible(tmp_path)
    assert len(await fix(folder, await examine(folder))) == 5
    (event,) = await history.events(folder)
    assert event.author == "doctor" and len([line for line in log_of(tmp_path) if "id" in line]) == 1
    await history.undo(folder, event)
    assert {**visible(tmp_path), "MEMORY.md": b""} == {**before, "MEMORY.md": b""}
    assert "- [Gone](gone.md) — was here\n" in index_of(tmp_path) and "(a.md)" in index_of(tmp_path)  # of files that are there


async def test_secrets_of_earlier_versions(tmp_path: Path) -> None:
    """A key that was taken out of a file is found in the history, by the file that held it and without the key."""
    key = "AKIA" + "Q" * 16
    folder = on_disk(tmp_path, {"a.md": A})
    await folder.refresh()
    await folder.apply([Replace("a.md", memory("Alpha", "the first", body=f"Key {key}."), (await etags(folder))["a.md"])], "me", "")
    (finding,) = [finding for finding in await examine(folder) if finding.code == "secret"]
    assert (finding.path, finding.line) == ("a.md", 7) and key not in finding.message
    for body in ("Nothing.", "Nothing yet.", "Nothing again."):  # versions after it, which say nothing
        await folder.apply([Replace("a.md", memory("Alpha", "the first", body=body), (await etags(folder))["a.md"])], "me", "")
    await folder.apply([Replace("a.md", A, (await etags(folder))["a.md"])], "me", "")
    (finding,) = [finding for finding in await examine(folder) if finding.code == "secret"]
    assert (finding.path, finding.line) == ("a.md", None) and "earlier version" in finding.message and key not in finding.message


async def test_secrets_in_what_waits(tmp_path: Path) -> None:
    """A key in a proposal is found before anybody accepts it, by the file that would hold it; once rejected it is gone."""
    key = "AKIA" + "Q" * 16
    settings = Config(extract="propose", secrets="keep")
    folder = on_disk(tmp_path, {"a.md": A}, config=settings)
    await drawn(folder, said("Key?"), reply(told("Key", f"The key is {key}.", path="key.md"), told("Home", "Lives in Oslo.")))
    (finding,) = [finding for finding in await examine(folder) if finding.code == "secret"]
    assert (finding.path, finding.line) == ("key.md", None) and key not in finding.message
    assert finding.message.endswith(", in a proposal that waits")
    for proposal in await list_proposals(folder):
        await reject(folder, proposal)
    assert [finding for finding in await examine(folder) if finding.code == "secret"] == []


async def test_a_queue_that_can_not_be_read(tmp_path: Path) -> None:
    """What waits and can't be looked through is a finding, and the rest is looked at."""
    folder = on_disk(tmp_path, {"a.md": A})
    (tmp_path / ".mdmemory").mkdir()
    (tmp_path / ".mdmemory/proposals").symlink_to(tmp_path / "a.md")
    (finding,) = [finding for finding in await examine(folder) if finding.code == "unreadable"]
    assert finding.path == ".mdmemory/proposals"


async def etags(folder: object) -> dict[str, str]:
    """What each file is now."""
    from mdmemory.backends.protocol import etag_of
    from mdmemory.folder.memory_folder import MemoryFolder

    assert isinstance(folder, MemoryFolder)
    await folder.refresh()
    return {path: etag_of(await folder.read(path)) for path in folder.files}


async def test_what_says_the_same_is_suggested(tmp_path: Path) -> None:
    """P1: a fact told five times in other words is suggested in pairs, the telling with a detail more too; nothing is merged."""
    told = [
        "The user prefers tabs over spaces in Python code.",
        "In Python code, tabs are preferred over spaces by the user.",
        "User: tabs, not spaces, in Python code.",
        "Python code of the user has tabs and no spaces, since a linter broke in 2019.",
        "Prefers tabs to spaces (Python code).",
    ]
    files = {f"tabs-{number}.md": memory("Tabs", "how to indent", "feedback", body) for number, body in enumerate(told)}
    others = {f"o{number}.md": memory(f"Topic {word}", f"about {word}", body=f"{word} is on a {word} day.") for number, word in
              enumerate(("sailing", "cooking", "taxes", "garden", "piano", "chess"))}  # fmt: skip
    folder = on_disk(tmp_path, {**files, **others})
    findings = [finding for finding in await examine(folder) if finding.code == "duplicate"]
    assert {finding.path for finding in findings} | {"tabs-0.md"} >= set(files)
    assert not {finding.path for finding in findings} & set(others) and not any(finding.is_fixable for finding in findings)
    assert {path: data for path, data in visible(tmp_path).items() if path != "MEMORY.md"} == {**files, **others}


async def test_files_that_supersede_each_other(tmp_path: Path) -> None:
    """Both would be hidden from agents, so both are named; a file that supersedes one that is there is fine."""
    order = {"a.md": memory("A", supersedes="b.md"), "b.md": memory("B", supersedes="a"), "c.md": memory("C", supersedes="A")}
    findings = [finding for finding in await examine(on_disk(tmp_path, order)) if finding.code.startswith("supersedes")]
    assert [(finding.code, finding.path) for finding in findings] == [
        ("supersedes-each-other", "a.md"),
        ("supersedes-each-other", "b.md"),
    ]


async def test_a_history_that_cannot_be_read(tmp_path: Path) -> None:
    """What stands in the place of the log keeps everything from being saved; it is named, and nothing else is hindered."""
    folder = on_disk(tmp_path, {"a.md": A, "MEMORY.md": "- [Alpha](a.md) — the first\n"})
    (tmp_path / ".mdmemory/log.jsonl").mkdir(parents=True)
    assert [finding.code for finding in await examine(folder)] == ["no-history"]


async def test_fixes_of_mounts_that_may_be_written(tmp_path: Path) -> None:
    """C1: a mount that can only be read is looked at and not mended; paths are those of the whole."""
    parts = {
        "": Part(Mount("home"), on_disk(tmp_path / "home", {"b.md": PR})),
        "team/": Part(Mount("team"), on_disk(tmp_path / "team", {"b.md": PR})),
        "docs/": Part(Mount("docs", access="read"), on_disk(tmp_path / "docs", {"b.md": PR})),
    }
    folder = MountedFolder(parts)
    findings = [finding for finding in await examine(folder) if finding.code == "yaml-comment"]
    assert [finding.path for finding in findings] == ["b.md", "team/b.md", "docs/b.md"]
    assert [change.path for change in await fixes(folder, findings)] == ["b.md", "team/b.md"]


def test_every_kind_has_a_page() -> None:
    """Each code has a page that says why it matters and what to do, and each page a code."""
    pages = {page.stem: page.read_text() for page in (Path(__file__).parents[1] / "docs/doctor").glob("*.md")}
    assert pages.pop("index").count("](") == len(KINDS) and set(pages) == set(KINDS)
    for code, kind in KINDS.items():
        assert pages[code].startswith(f"# {code}\n") and kind.why in pages[code] and kind.remedy in pages[code]
