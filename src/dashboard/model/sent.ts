/** Parses server-sent events from chunks of text. The browser's own EventSource cannot send a token. */

export interface Sent {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

export class SentEvents {
  #text = '';

  /** Returns the events that this chunk completes, and whether anything arrived: a comment is a heartbeat. */
  push(piece: string): readonly Sent[] {
    this.#text += piece;
    const found: Sent[] = [];
    for (let end = this.#text.indexOf('\n\n'); end >= 0; end = this.#text.indexOf('\n\n')) {
      const one = sentIn(this.#text.slice(0, end));
      this.#text = this.#text.slice(end + 2);
      if (one !== undefined) found.push(one);
    }
    return found;
  }
}

function sentIn(block: string): Sent | undefined {
  const fields: Record<string, string> = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '');
  }
  const { id = '', event = '', data } = fields;
  return data === undefined ? undefined : { id, event, data };
}
