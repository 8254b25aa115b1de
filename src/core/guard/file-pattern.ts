/** What `fileContains` looks for: `/regex/flags`, or else a piece of text. */

export type FilePattern =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'regex'; readonly regex: RegExp }
  | { readonly kind: 'invalid'; readonly why: string };

/**
 * Two slashes with only letters after the last make a regex, even if those letters are no flags: `/ready/x` is reported as a
 * mistake instead of being searched for as text, which nobody would mean. `/etc/hosts.conf` is text.
 */
export function readFilePattern(pattern: string): FilePattern {
  const [, source, flags] = /^\/(.+)\/([a-z]*)$/is.exec(pattern) ?? [];
  if (source === undefined) return { kind: 'text', text: pattern };
  try {
    return { kind: 'regex', regex: new RegExp(source, flags) };
  } catch (error) {
    return { kind: 'invalid', why: (error as SyntaxError).message };
  }
}
