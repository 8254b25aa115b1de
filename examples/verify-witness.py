#!/usr/bin/env python3
"""Verifies an export of signalbox's witness, as docs/witness.md specifies it: verify-witness.py FILE [ANCHORS]
Names the first thing that is wrong, and exits with 65. It checks no signatures, for which Python has nothing."""
import decimal, gzip, hashlib, json, re, sys

START = {"number": 0, "seq": 0, "hash": "0" * 64}  # what the first checkpoint, and the first entry of a chain, come after
UNHASHED = {"header": ["hash"], "checkpoint": ["hash", "kind", "heads", "signature"], "entry": ["hash", "kind"], "end": ["hash"]}

def sha(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()

def canonical(value):  # RFC 8785: keys in the order of UTF-16, numbers as ECMAScript writes them
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(canonical(key) + ":" + canonical(value[key]) for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (str, bool)) or value is None:
        return json.dumps(value, ensure_ascii=False)
    is_short = value == 0 or 1e-6 <= abs(value) < 1e21
    text = format(decimal.Decimal(repr(value + 0.0)), "f") if is_short else repr(value + 0.0)
    return re.sub(r"\.0$", "", re.sub("e([+-])0", r"e\1", text))

def merkle(level):
    while len(level) > 1:
        level = [sha("\x01" + "".join(level[i:i + 2])) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return level[0] if level else sha("")

def check(ok, what, problem):
    if not ok:
        which = [str(what[field]) for field in ("kind", "number", "resource", "seq") if field in what]
        sys.exit(print("bad record: " + " ".join(which + [problem])) or 65)

def verify(texts, anchors):
    lines = [json.loads(text) for text in texts]
    for line in lines:
        content = {field: line[field] for field in line if field not in UNHASHED[line["kind"]]}
        check(sha(canonical(content)) == line["hash"], line, "has been changed")
    checkpoints, entries = ([line for line in lines if line["kind"] == kind] for kind in ("checkpoint", "entry"))
    kinds = ["header"] + ["checkpoint"] * len(checkpoints) + ["entry"] * len(entries) + ["end"]
    check([line["kind"] for line in lines] == kinds, {}, "a line is at the wrong place, or the first or the last is missing")
    header, end, last, said, closed, chains, name = lines[0], lines[-1], START, {}, {}, {}, None
    for line in checkpoints:
        follows = (line["number"], line["previous"]) == (last["number"] + 1, last["hash"])
        check(follows or last is START and line["number"] > 1, line, "does not follow the one before it")
        check(anchors.get(line["number"], line["hash"]) == line["hash"], line, "is not the one that was anchored")
        last, heads = line, line.get("heads", [])
        sums = (merkle([sha("\0" + canonical(head)) for head in heads]), len(heads), sum(head["seq"] for head in heads))
        check("heads" not in line or sums == (line["root"], line["chains"], line["entries"]), line, "has other heads")
        for head in heads:
            known = said.setdefault(head["resource"], {}).setdefault(head["seq"], head)
            check(known["hash"] == head["hash"], line, "contradicts another one")
            if "closed" in head:  # what follows under this name is another chain
                said[head["resource"]], closed[head["resource"]] = {}, {head["seq"]: head["hash"]}
    for line in entries:
        check(line["resource"] == name or line["resource"] not in chains, line, "comes after entries of other chains")
        name, before = line["resource"], (line["seq"] - 1, line["previous"])
        chain = chains.setdefault(name, dict([before]))  # the hash of each entry by its number, and of the one before the first
        check(next(reversed(chain.items())) == before, line, "does not follow the one before it")
        chain[line["seq"]] = line["hash"]
    counts = (len(entries), len(checkpoints), last["hash"])
    check((end["entries"], end["checkpoints"], end.get("checkpoint", START)["hash"]) == counts, end, "has other counts")
    for head in end["heads"]:
        cut, known, was = head.get("trimmed", START), said.pop(head["resource"], {}), closed.get(head["resource"], {})
        chain = chains.pop(head["resource"], {cut["seq"]: cut["hash"]})
        first, newest, most = min(chain), max(chain), max(known, default=0)
        check((newest, chain[newest]) == (head["seq"], head["hash"]) and most <= newest, head, "is not where its chain ends")
        check(first < cut["seq"] or (first, chain[first]) == (cut["seq"], cut["hash"]), head, "ends a chain that begins too late")
        vouched = first == 0 or first in known or first in was or most > first
        check(vouched and was.get(first, chain[first]) == chain[first], head, "was trimmed, and no checkpoint covers that")
        for seq in known.keys() & chain.keys():
            start = known[seq].get("from", 0)
            same = start <= first or merkle([chain[number] for number in range(start, seq + 1)]) == known[seq]["tree"]
            check(same and chain[seq] == known[seq]["hash"], {**head, "seq": seq}, "is not what a checkpoint says")
    lost = [*chains, *(name for name in said if said[name] and name in header.get("only", said))]
    check(not lost, end, "does not know " + ", ".join(lost))
    check(max(anchors, default=0) <= last["number"], last, "is older than one that was anchored")
    return "good: %d entries of %d chains, %d checkpoints" % (len(entries), len(end["heads"]), len(checkpoints))

if __name__ == "__main__":
    anchored = [json.loads(text) for text in open(sys.argv[2], encoding="utf-8")] if len(sys.argv) > 2 else []
    try:
        with (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "rt", encoding="utf-8", newline="\n") as file:
            print(verify(file, {one["number"]: one["hash"] for one in anchored}))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        check(False, {}, "cannot be read: %r" % error)
