import { redacted } from './redacted.ts';

/** An error message shows the offending value; a huge value would hide the message itself, and a password must not be shown. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(redacted(value)) : redacted(describe(value));
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

function describe(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint' || value === undefined) return String(value);
  try {
    return JSON.stringify(value) ?? typeof value;
  } catch {
    return typeof value;
  }
}
