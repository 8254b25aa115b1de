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


def hash_of(line, *without):
    return sha(canonical({name: value for name, value in line.items() if name not in without}))


def merkle(level):
    while len(level) > 1:
        level = [sha("\x01" + "".join(level[i:i + 2])) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return level[0] if level else sha("")


def check(ok, what):
    if not ok:
        sys.exit(print("bad record: " + what) or 65)


def verify(lines, anchors):
    lines = (json.loads(text) for text in lines)
    header = next(lines, {})
    check(header.get("kind") == "header" and hash_of(header, "hash") == header["hash"], "the header is not the one that was written")
    heads, shut, chains, hashes = {}, {}, {}, {}  # of checkpoints: by chain and number; closed chains; what the entries say
    last, name, counts, end = {"number": 0, "hash": ZEROS}, None, {"checkpoint": 0, "entry": 0}, None
    for line in lines:
        kind = line["kind"]
        check(end is None, "something follows the end")
        if kind == "end":
            check(hash_of(line, "hash") == line["hash"], "the end has been changed")
            end = line
            continue
        counts[kind] += 1
        if kind == "checkpoint":
            which = "checkpoint %d" % line["number"]
            check(name is None, which + " comes after entries")
            check(hash_of(line, "kind", "hash", "heads", "signature") == line["hash"], which + " has been changed")
            first = counts[kind] == 1 and line["number"] > 1
            check(first or (line["number"], line["previous"]) == (last["number"] + 1, last["hash"]), which + " does not follow")
            check(anchors.pop(line["number"], line["hash"]) == line["hash"], which + " is not the one that was anchored")
            last = line
            covered = line.get("heads", [])
            sums = (merkle([sha("\0" + canonical(head)) for head in covered]), len(covered), sum(head["seq"] for head in covered))
            check("heads" not in line or sums == (line["root"], line["chains"], line["entries"]), which + " has other heads")
            for head in covered:
                known = heads.setdefault(head["resource"], {}).setdefault(head["seq"], head)
                check(known["hash"] == head["hash"], which + " contradicts another one")
                if "closed" in head:
                    heads[head["resource"]], shut[head["resource"]] = {}, head
            continue
        which = "entry %s of %s" % (line["seq"], line["resource"])
        check(hash_of(line, "kind", "hash") == line["hash"], which + " has been changed")
        if line["resource"] != name:
            name, hashes = line["resource"], {}
            check(name not in chains, which + " comes after entries of other chains")
            chains[name] = {"first": line["seq"], "before": line["previous"], "seq": line["seq"] - 1, "hash": line["previous"]}
        chain = chains[name]
        check((line["seq"], line["previous"]) == (chain["seq"] + 1, chain["hash"]), which + " does not follow the one before it")
        chain.update(seq=line["seq"], hash=line["hash"])
        hashes[line["seq"]] = line["hash"]
        head = heads.get(name, {}).get(line["seq"])
        if head is not None:
            check(head["hash"] == line["hash"], which + " is not what a checkpoint says")
            tree = [hashes.get(seq) for seq in range(head.get("from", 0), line["seq"] + 1)]
            check(None in tree or merkle(tree) == head["tree"], which + " is not in the tree of its checkpoint")
            hashes = {}
    check(end is not None, "the record ends without its last line")
    check((end["entries"], end["checkpoints"]) == (counts["entry"], counts["checkpoint"]), "the counts of the last line are others")
    check(end.get("checkpoint", {"hash": ZEROS})["hash"] == last["hash"], "the record ended with another checkpoint")
    for head in end["heads"]:
        name, cut = head["resource"], head.get("trimmed", {"seq": 0, "hash": ZEROS})
        chain = chains.pop(name, {"first": cut["seq"] + 1, "before": cut["hash"], **cut})
        covered, gone = heads.pop(name, {}), chain["first"] - 1
        check((chain["seq"], chain["hash"]) == (head["seq"], head["hash"]), name + " does not end where it should")
        check(gone <= cut["seq"], "%s begins with %d" % (name, chain["first"]))
        check(gone < cut["seq"] or chain["before"] == cut["hash"], name + " follows another trimmed entry")
        covered.update({seq: one for seq, one in [(shut.get(name, {}).get("seq"), shut.get(name))] if seq == gone})
        check(covered.get(gone, {"hash": chain["before"]})["hash"] == chain["before"], name + ": a checkpoint has another trimmed entry")
        check(gone == 0 or max(covered, default=0) >= gone, name + " was trimmed, and no checkpoint covers that")
        check(max(covered, default=0) <= head["seq"], name + " ends before what a checkpoint covers")
    check(not chains, "the last line does not know " + ", ".join(chains))
    gone = [name for name in heads if heads[name] and name in header.get("only", heads)]
    check(not gone, "a checkpoint covers chains that are not there: " + ", ".join(gone))
    check(max(anchors, default=0) <= last["number"], "an anchored checkpoint is not there")
    return "good: %d entries of %d chains, %d checkpoints" % (counts["entry"], len(end["heads"]), counts["checkpoint"])


if __name__ == "__main__":
    kept = [json.loads(text) for text in open(sys.argv[2], encoding="utf-8")] if len(sys.argv) > 2 else []
    opened = gzip.open if sys.argv[1].endswith(".gz") else open
    try:
        with opened(sys.argv[1], "rt", encoding="utf-8", newline="\n") as file:
            print(verify(file, {one["number"]: one["hash"] for one in kept}))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        check(False, "cannot be read: %r" % error)
