/**
 * Checks one chain, link by link: each has the next number and names the hash of the previous link. The first link that does not
 * fit is found at once, but only later links show what happened: if entry 5 comes after entry 3, then entry 4 is missing or comes
 * later, or entry 5 was inserted. Such a link is a suspect until the following links settle it.
 */

/** The kinds of damage to a record. */
export type FindingKind =
  /** It differs from what was written: its hash, or the hash that another entry names, is different. */
  | 'changed'
  /** It does not exist, although the entry after it does. */
  | 'missing'
  /** It was not written at this place: a copy, or an entry that follows no other. */
  | 'inserted'
  /** It is at the wrong place. */
  | 'reordered'
  /** The record ends before it. */
  | 'truncated'
  /** Two different entries follow the same entry. */
  | 'forked'
  /** A checkpoint is not signed with the key. */
  | 'bad-signature'
  /** A checkpoint does not cover what it should. */
  | 'not-covered';

/** An entry or a checkpoint, as a link of its chain. */
export interface Link {
  /** From 1. */
  readonly seq: number;
  readonly previous: string;
  readonly hash: string;
}

/** The problem with link `seq` of a chain. */
export interface LinkFinding {
  readonly kind: FindingKind;
  readonly seq: number;
  readonly why: string;
}

interface Suspect {
  readonly link: Link;
  /** The intact chain before the suspect, continued with the links that fit. */
  at: { readonly seq: number; readonly hash: string };
  /** Whether the chain went on without the suspect. */
  goesOn: boolean;
}

export class ChainCheck {
  /** The first link: number 1, or the first after a trim. */
  first: Link | undefined;
  /** The number of the last link so far. */
  seq = 0;
  hash: string;
  readonly #start: string;
  /** The beginning of each hash as a number, to tell a copy from a fork without keeping all hashes. */
  readonly #prints: number[] = [];
  #suspect: Suspect | undefined;

  /** `start` is the hash that the first link names as the previous one. */
  constructor(start: string) {
    this.#start = start;
    this.hash = start;
  }

  get isSuspect(): boolean {
    return this.#suspect !== undefined;
  }

  /** The problem that the link reveals at once. If it becomes a suspect, `verdict` decides later. */
  add(link: Link): LinkFinding | undefined {
    if (this.#suspect !== undefined) {
      this.#settle(this.#suspect, link);
      return undefined;
    }
    if (this.first === undefined) return this.#begin(link);
    if (this.follows(link)) {
      this.#accept(link);
      return undefined;
    }
    return this.#doubt(link, this.first);
  }

  /** Whether the link continues the chain. */
  protected follows(link: Link): boolean {
    return link.seq === this.seq + 1 && link.previous === this.hash;
  }

  /** What happened to the suspect, once no more links follow. */
  verdict(): LinkFinding | undefined {
    if (this.#suspect === undefined) return undefined;
    const { link, at, goesOn } = this.#suspect;
    const { seq } = link;
    if (at.seq === seq - 1 && at.hash === link.previous)
      return { kind: 'reordered', seq, why: `it comes before ${at.seq}, which it follows` };
    if (goesOn) return { kind: 'inserted', seq, why: `the chain goes on from ${this.seq} without it` };
    if (seq > this.seq + 1) {
      const last = seq - 1;
      const which = last === this.seq + 1 ? `${last} is` : `${this.seq + 1} to ${last} are`;
      return { kind: 'missing', seq: this.seq + 1, why: `${which} missing: ${seq} comes after ${this.seq}` };
    }
    return { kind: 'changed', seq: this.seq, why: `${seq} follows one with another hash` };
  }

  #begin(link: Link): LinkFinding | undefined {
    this.first = link;
    this.#accept(link);
    if (link.seq === 1 && link.previous !== this.#start)
      return { kind: 'changed', seq: 1, why: 'it is the first, and names one before it' };
    return undefined;
  }

  #accept(link: Link): void {
    this.seq = link.seq;
    this.hash = link.hash;
    this.#prints.push(printOf(link.hash));
  }

  #doubt(link: Link, first: Link): LinkFinding | undefined {
    const { seq } = link;
    if (seq > this.seq) {
      this.#suspect = { link, at: { seq: this.seq, hash: this.hash }, goesOn: false };
    } else if (seq < first.seq) {
      // The chain began too late, so its first link is the suspect.
      this.#suspect = { link: first, at: link, goesOn: true };
    } else if (this.#prints[seq - first.seq] === printOf(link.hash)) {
      return { kind: 'inserted', seq, why: 'it is there twice' };
    } else {
      return { kind: 'forked', seq, why: 'two different ones have this number' };
    }
    return undefined;
  }

  #settle(suspect: Suspect, link: Link): void {
    const { at } = suspect;
    if (link.seq !== at.seq + 1 || link.previous !== at.hash || at.hash === suspect.link.previous) return;
    suspect.at = link;
    suspect.goesOn = true;
  }
}

function printOf(hash: string): number {
  return Number.parseInt(hash.slice(0, 8), 16);
}
