/**
 * From nodes to plain values, and back from a path in the value to the node.
 *
 * An alias returns the same object as its anchor, so that a bomb of aliases takes no memory. But it counts with its full
 * size, because code that walks the value walks all of it.
 */
import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, Scalar, type YAMLMap } from 'yaml';
import { type Path, shown } from '../core/index.ts';

const MOST_VALUES = 50_000;
const DEEPEST = 300;

interface Converted {
  readonly value: unknown;
  /** How many values it has, counting all that is in it, and how deep they are nested. */
  readonly size: number;
  readonly height: number;
}

const NULL: Converted = { value: null, size: 1, height: 1 };

export class Conversion {
  readonly problems: { readonly offset: number; readonly message: string }[] = [];
  readonly #anchors = new Map<string, Node>();
  readonly #targets = new Map<Alias, Node>();
  readonly #done = new Map<Node, Converted>();

  valueOf(root: Node): unknown {
    const { value, size, height } = this.#convert(root);
    if (size > MOST_VALUES) this.#refuse(root, `its aliases expand to ${size} values; expected at most ${MOST_VALUES}`);
    else if (height > DEEPEST) this.#refuse(root, `its aliases are nested ${height} deep; expected at most ${DEEPEST}`);
    return value;
  }

  /** Where the entry at the path begins; if there is none, the last entry that exists on the way to it. */
  offsetOf(root: Node, path: Path): number {
    let node: Node | undefined = root;
    let offset = offsetOf(root);
    for (const step of path) {
      const here: Node | undefined = this.#behind(node);
      if (isMap(here)) {
        const pair = pairsOf(here).find(({ key }) => keyText(key) === String(step));
        if (pair === undefined) break;
        offset = offsetOf(pair.key as Node);
        node = pair.value as Node | undefined;
      } else if (isSeq(here) && typeof step === 'number' && step < here.items.length) {
        node = here.items[step] as Node;
        offset = offsetOf(node);
      } else break;
    }
    return offset;
  }

  #convert(node: Node): Converted {
    if (isAlias(node)) return this.#alias(node);
    const { anchor, tag } = node as { anchor?: string; tag?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    if (tag !== undefined) this.#refuse(node, `the tag ${tag} is not accepted; text goes between quotes`);
    const converted = this.#plain(node);
    this.#done.set(node, converted);
    return converted;
  }

  #plain(node: Node): Converted {
    if (isMap(node)) return this.#map(node);
    if (isSeq(node))
      return collected(
        (node.items as Node[]).map((item) => this.#convert(item)),
        (values) => values,
      );
    if (isScalar(node)) return { ...NULL, value: this.#scalar(node) };
    return NULL;
  }

  #map(map: YAMLMap): Converted {
    const seen = new Set<string>();
    const keys: string[] = [];
    const values: Converted[] = [];
    for (const { key, value } of pairsOf(map)) {
      const name = keyText(key);
      if (name === undefined) {
        this.#refuse(key as Node, 'a key is not text; expected keys that are text');
        continue;
      }
      if (seen.has(name)) this.#refuse(key as Node, `the key ${shown(name)} is there twice`);
      if (name === '<<' && (key as Scalar).type === Scalar.PLAIN) {
        this.#refuse(key as Node, '<< is not part of YAML 1.2; expected an alias for a whole value, such as *name');
      }
      seen.add(name);
      keys.push(name);
      const { anchor } = key as Scalar;
      if (anchor !== undefined) this.#anchors.set(anchor, key as Node);
      values.push(value === null || value === undefined ? NULL : this.#convert(value as Node));
    }
    // Not by assignment, because `__proto__` is a key like any other.
    return collected(values, (all) => Object.fromEntries(keys.map((key, place) => [key, all[place]])));
  }

  #alias(alias: Alias): Converted {
    const target = this.#anchors.get(alias.source);
    if (target === undefined) {
      this.#refuse(
        alias,
        `*${alias.source} has no &${alias.source} before it; text that begins with * goes between quotes`,
      );
      return NULL;
    }
    this.#targets.set(alias, target);
    const converted = this.#done.get(target) ?? (isScalar(target) ? this.#convert(target) : undefined);
    if (converted !== undefined) return converted;
    this.#refuse(alias, `*${alias.source} is inside of what it stands for`);
    return NULL;
  }

  #scalar({ value, source = '', type, range }: Scalar): unknown {
    if (type !== Scalar.PLAIN || typeof value !== 'number') return value;
    if (String(value) === source) return value;
    const offset = range?.[0] ?? 0;
    const read =
      Number.isSafeInteger(value) || !Number.isInteger(value)
        ? `would be read as the number ${value}`
        : 'is too large for a number';
    this.problems.push({ offset, message: `${source} ${read}; write "${source}" if the text is meant` });
    return value;
  }

  #behind(node: Node | undefined): Node | undefined {
    return isAlias(node) ? this.#targets.get(node) : node;
  }

  #refuse(node: Node, message: string): void {
    this.problems.push({ offset: offsetOf(node), message });
  }
}

function collected(parts: readonly Converted[], make: (values: readonly unknown[]) => unknown): Converted {
  let size = 1;
  let height = 0;
  for (const part of parts) {
    // A sum beyond the largest number becomes infinite, and is refused like any other.
    size += part.size;
    height = Math.max(height, part.height);
  }
  return { value: make(parts.map(({ value }) => value)), size, height: height + 1 };
}

function pairsOf(map: YAMLMap): readonly Pair[] {
  return map.items;
}

function keyText(key: unknown): string | undefined {
  return isScalar(key) && typeof key.value === 'string' ? key.value : undefined;
}

function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}
