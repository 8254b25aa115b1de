/**
 * Hides the password in a value that is shown to people, also where its URL is mistyped: `etcd://me:PASSWORD@host`,
 * `etcd//me:PASSWORD@host`, `--stroe=etcd:me:PASSWORD@host`. Hides too much rather than too little: up to the last @,
 * since a password may have been written with an @ in it.
 */
export function redacted(value: string): string {
  // Most values have no password, and every start would compile the expression.
  if (!value.includes('@')) return value;
  return value.replace(/((?:\/\/|etcds?:)\/*[^:/]*):[^]*@/i, (_, kept: string) => `${kept}@`);
}

/** The same for a whole message, in which each word may be such a value. */
export function redactedWords(message: string): string {
  return message.replace(/\S+/g, redacted);
}
