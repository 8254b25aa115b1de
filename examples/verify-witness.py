#!/usr/bin/env python3
"""Verifies an export of signalbox's witness, as docs/witness.md specifies it: verify-witness.py FILE [ANCHORS]
Names the first thing that is wrong, and exits with 65. It checks no signatures, for which Python has nothing."""
import collections, decimal, gzip, hashlib, json, re, sys

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
    text = repr(value + 0.0)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return re.sub(r"\.0$", "", format(decimal.Decimal(text), "f"))
    return re.sub("e([+-])0", r"e\1", text)

def merkle(level):
    while len(level) > 1:
        pairs = [level[i:i + 2] for i in range(0, len(level), 2)]
        level = [sha("\x01" + "".join(pair)) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0] if level else sha("")

def check(ok, what):
    if not ok:
        sys.exit(print("bad record: " + what) or 65)

def verify(lines, anchors):
    said, closed, chains = {}, {}, {}  # what checkpoints say of a chain, by the number of the entry; what they closed; what is there
    header, last, name, end, counts = None, START, None, None, collections.Counter()
    for line in map(json.loads, lines):
        kind, which = line["kind"], " ".join(str(line[field]) for field in ("kind", "number", "resource", "seq") if field in line)
        content = {field: line[field] for field in line if field not in UNHASHED[kind]}
        check(sha(canonical(content)) == line["hash"], which + " has been changed")
        check((kind == "header") == (header is None) and end is None, which + " comes before the header or after the end")
        counts[kind] += 1
        if kind == "header":
            header = line
        elif kind == "end":
            end = line
        elif kind == "checkpoint":
            follows = (line["number"], line["previous"]) == (last["number"] + 1, last["hash"])
            check(name is None and (follows or last is START and line["number"] > 1), which + " is at the wrong place")
            check(anchors.get(line["number"], line["hash"]) == line["hash"], which + " is not the one that was anchored")
            last, heads = line, line.get("heads", [])
            sums = (merkle([sha("\0" + canonical(head)) for head in heads]), len(heads), sum(head["seq"] for head in heads))
            check("heads" not in line or sums == (line["root"], line["chains"], line["entries"]), which + " has other heads")
            for head in heads:
                known = said.setdefault(head["resource"], {})
                check(known.setdefault(head["seq"], head["hash"]) == head["hash"], which + " contradicts another one")
                if "closed" in head:  # what follows under this name is another chain
                    said[head["resource"]], closed[head["resource"]] = {}, {head["seq"]: head["hash"]}
        else:
            before, place = (line["seq"] - 1, line["previous"]), (line["seq"], line["hash"])
            check(line["resource"] == name or line["resource"] not in chains, which + " comes after entries of other chains")
            name = line["resource"]
            first, newest = chains.get(name, (before, before))
            check(newest == before, which + " does not follow the one before it")
            check(said.get(name, {}).get(*place) == line["hash"], which + " is not what a checkpoint says")
            chains[name] = (first, place)
    check(end is not None, "it ends without its last line")
    check((end["entries"], end["checkpoints"]) == (counts["entry"], counts["checkpoint"]), "its end has other counts")
    check(end.get("checkpoint", START)["hash"] == last["hash"], "it ended with another checkpoint")
    for head in end["heads"]:
        name, trimmed = head["resource"], head.get("trimmed", START)
        cut = (trimmed["seq"], trimmed["hash"])
        first, newest = chains.pop(name, (cut, cut))
        known = said.pop(name, {})
        most, known = max(known, default=0), {**closed.get(name, {}), **known}
        check(newest == (head["seq"], head["hash"]) and most <= head["seq"], name + " does not end where it should")
        check(first == cut or first[0] < cut[0], name + " begins too late, or follows another entry")
        check(known.get(*first) == first[1], name + ": a checkpoint has another hash for the last that was trimmed")
        check(first[0] == 0 or first[0] in known or most > first[0], name + " was trimmed, and no checkpoint covers that")
    lost = [*chains, *(name for name in said if said[name] and name in header.get("only", said))]
    check(not lost, "its end does not know " + ", ".join(lost))
    check(max(anchors, default=0) <= last["number"], "an anchored checkpoint is not there")
    return "good: %d entries of %d chains, %d checkpoints" % (counts["entry"], len(end["heads"]), counts["checkpoint"])

if __name__ == "__main__":
    anchored = [json.loads(text) for text in open(sys.argv[2], encoding="utf-8")] if len(sys.argv) > 2 else []
    try:
        with (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "rt", encoding="utf-8", newline="\n") as file:
            print(verify(file, {one["number"]: one["hash"] for one in anchored}))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        check(False, "cannot be read: %r" % error)
