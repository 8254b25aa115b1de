/**
 * What a key holds: text, as every engine stores it. A document is text too, but this process
 * often has its parsed form at hand, and an engine that lives in this process never needs the
 * text; so each form is made from the other only on demand.
 */
export class Value {
  #text: string | undefined;
  #json: unknown;
  /**
   * The check, or the machine, that last found nothing wrong with the document. A document never changes, so the same
   * check need not look at it again: otherwise, a reader of a long queue would check every request at every read.
   */
  passed: object | undefined = undefined;

  private constructor(text: string | undefined, json: unknown) {
    this.#text = text;
    this.#json = json;
  }

  /** The value as text. */
  static text(text: string): Value {
    return new Value(text, undefined);
  }

  /** `document` is shared, not copied: the caller must not change it afterwards. */
  static json(document: unknown): Value {
    return new Value(undefined, document);
  }

  get text(): string {
    this.#text ??= JSON.stringify(this.#json);
    return this.#text;
  }

  /** Throws a SyntaxError if the text is not JSON. */
  get json(): unknown {
    if (this.#json === undefined && this.#text !== undefined) this.#json = JSON.parse(this.#text);
    return this.#json;
  }
}
