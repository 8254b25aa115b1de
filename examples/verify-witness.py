#!/usr/bin/env python3
"""Verifies an export of signalbox's witness with nothing but Python: verify-witness.py FILE [ANCHORS]

docs/witness.md specifies what is checked. Says what is wrong first and exits with 65, or counts the entries.
"""
import gzip, hashlib, json, re, sys
from decimal import Decimal

ZEROS = "0" * 64


def sha(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def number(n):
    """As ECMAScript writes it (RFC 8785, 3.2.2.3)."""
    text = repr(float(n))
    if n == 0 or not 1e-6 <= abs(n) < 1e21:
        return "0" if n == 0 else re.sub("e([+-])0", r"e\1", text)
    text = format(Decimal(text), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def canonical(value):
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(canonical(key) + ":" + canonical(value[key]) for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def merkle(level):
    while len(level) > 1:
        level = [sha("\x01" + "".join(level[i:i + 2])) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return level[0] if level else sha("")


def check(ok, what):
    if not ok:
        sys.exit(print("bad record: " + what) or 65)


def without(line, *names):
    return {name: value for name, value in line.items() if name not in names}


def verify(lines, anchors):
    chains, said, last, number_of, end, count = {}, {}, ZEROS, None, None, 0
    closed, current, hashes, entries, only = set(), None, {}, 0, None
    for at, text in enumerate(lines, 1):
        line = json.loads(text)
        kind, where = line["kind"], "line %d" % at
        check((kind == "header") == (at == 1) and end is None, where + " is out of place")
        if kind in ("header", "end"):
            check(sha(canonical(without(line, "hash"))) == line["hash"], where + " has been changed")
            end, only = (line, only) if kind == "end" else (None, line.get("only"))
        elif kind == "checkpoint":
            check(current is None, where + " comes after entries")
            body = without(line, "kind", "hash", "heads", "signature")
            check(sha(canonical(body)) == line["hash"], "checkpoint %d has been changed" % line["number"])
            check(number_of in (None, line["number"] - 1) and (count == 0 or line["previous"] == last), where + " does not follow")
            check(line["number"] > 1 or line["previous"] == ZEROS, "checkpoint 1 follows another")
            number_of, last, count = line["number"], line["hash"], count + 1
            check(anchors.pop(number_of, last) == last, "checkpoint %d is not the one that was anchored" % number_of)
            heads = line.get("heads")
            if heads is not None:
                check(merkle([sha("\0" + canonical(head)) for head in heads]) == line["root"], where + ": root and heads differ")
                check((len(heads), sum(head["seq"] for head in heads)) == (line["chains"], line["entries"]), where + ": counts")
                for head in heads:
                    known = said.setdefault(head["resource"], {}).setdefault(head["seq"], head)
                    check(known["hash"] == head["hash"], where + " contradicts another checkpoint")
        else:
            check(kind == "entry", where + " is of no known kind")
            name, seq = line["resource"], line["seq"]
            which = "entry %s of %s" % (seq, name)
            check(sha(canonical(without(line, "kind", "hash"))) == line["hash"], which + " has been changed")
            if name != current:
                check(name not in closed, which + " comes after entries of other chains")
                current, hashes = name, {}
                closed.add(name)
                chains[name] = {"first": seq, "before": line["previous"], "seq": seq - 1, "hash": line["previous"]}
            chain = chains[name]
            check((seq, line["previous"]) == (chain["seq"] + 1, chain["hash"]), which + " does not follow the one before it")
            chain.update(seq=seq, hash=line["hash"])
            hashes[seq], entries = line["hash"], entries + 1
            head = said.get(name, {}).get(seq)
            if head is not None:
                check(head["hash"] == line["hash"], which + " is not what a checkpoint says")
                if head.get("from", 0) in hashes:
                    tree = merkle([hashes[i] for i in range(head["from"], seq + 1)])
                    check(tree == head["tree"], which + " is not in the tree of its checkpoint")
                hashes = {}
    check(end is not None, "the record ends without its last line")
    check((end["entries"], end["checkpoints"]) == (entries, count), "the counts of the last line are others")
    check(end.get("checkpoint", {"number": 0, "hash": ZEROS})["hash"] == last, "the record ended with another checkpoint")
    for head in end["heads"]:
        name, cut = head["resource"], head.get("trimmed", {"seq": 0, "hash": ZEROS})
        chain = chains.pop(name, {"first": cut["seq"] + 1, "before": cut["hash"], **cut})
        check((chain["seq"], chain["hash"]) == (head["seq"], head["hash"]), name + " does not end where it should")
        check(chain["first"] <= cut["seq"] + 1, "%s begins with %d" % (name, chain["first"]))
        check(chain["first"] <= cut["seq"] or chain["before"] == cut["hash"], name + " follows another trimmed entry")
        gone = chain["first"] - 1
        exact = said.get(name, {}).get(gone, {"hash": chain["before"]})
        check(exact["hash"] == chain["before"], name + ": a checkpoint has another trimmed entry")
        check(gone == 0 or max(said.get(name, {0: 0})) >= gone, name + " was trimmed, and no checkpoint covers that")
        check(max(said.pop(name, {0: 0})) <= head["seq"], name + " ends before what a checkpoint covers")
    check(not chains, "the last line does not know " + ", ".join(chains))
    check(not [name for name in said if only is None or name in only], "a checkpoint covers chains that are not there")
    check(not [n for n in anchors if n > (number_of or 0)], "an anchored checkpoint is not there")
    return "good: %d entries of %d chains, %d checkpoints" % (entries, len(end["heads"]), count)


if __name__ == "__main__":
    kept = [json.loads(text) for text in open(sys.argv[2], encoding="utf-8")] if len(sys.argv) > 2 else []
    opened = gzip.open if sys.argv[1].endswith(".gz") else open
    try:
        with opened(sys.argv[1], "rt", encoding="utf-8", newline="\n") as file:
            print(verify(file, {one["number"]: one["hash"] for one in kept}))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        check(False, "cannot be read: %r" % error)
