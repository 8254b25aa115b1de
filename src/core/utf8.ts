const encoder = new TextEncoder();

/** The length of a text in UTF-8. Most texts are ASCII, and short. */
export function bytesIn(text: string): number {
  return /^[\x00-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length;
}
