/** What is wrong with the store itself, as every board shows it: keys that cannot be read, and what the witness warns of. */

/** What the witness warns of. */
export interface WitnessWarnings {
  /** The record is nearly full: maintenance trims it when it is. */
  readonly isFilling: boolean;
  /** Chains that maintenance found damaged; an empty name stands for what is no chain. */
  readonly damaged: readonly string[];
  /** When it last warned, by the clock of the process that did. */
  readonly at?: number | undefined;
}

export interface Trouble {
  readonly kind: 'unreadable' | 'damaged' | 'filling';
  /** Stays the same as long as the trouble lasts. */
  readonly key: string;
  readonly subject: string;
  readonly says: string;
  /** What a person runs to see more. */
  readonly command: string;
  readonly at: number | undefined;
}

const MOST_NAMED = 3;

function named(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** The worst first. */
export function troublesOf(
  malformed: readonly { readonly key: string; readonly why: string }[],
  witness: WitnessWarnings | undefined,
): readonly Trouble[] {
  const found: Trouble[] = [];
  const { damaged = [], isFilling = false, at } = witness ?? {};
  if (damaged.length > 0) {
    const chains = damaged.map((chain) => (chain === '' ? 'the record' : chain));
    found.push({
      ...{ kind: 'damaged', key: `damaged ${damaged.join('\n')}`, subject: named(chains), at },
      ...{ says: ': what the witness recorded of it does not verify', command: 'signalbox witness verify' },
    });
  }
  const [first] = malformed;
  if (first !== undefined) {
    const subject = malformed.length === 1 ? first.key : `${malformed.length} keys of the store`;
    found.push({
      ...{ kind: 'unreadable', key: `unreadable ${malformed.map(({ key }) => key).join('\n')}`, subject },
      ...{ says: ` cannot be read: ${first.why}`, command: 'signalbox doctor', at: undefined },
    });
  }
  if (isFilling) {
    found.push({
      ...{ kind: 'filling', key: `filling ${at ?? ''}`, subject: 'The record of the witness', at },
      ...{ says: ' is nearly full: its oldest entries will be trimmed', command: 'signalbox witness export' },
    });
  }
  return found;
}
