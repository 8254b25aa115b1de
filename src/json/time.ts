/** Writes a time in ISO 8601, which people and programs read; null for no time, or an impossible one. */
export function time(ms: number | undefined): string | null {
  return ms !== undefined && Number.isFinite(ms) && Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : null;
}

/** Reads such a time back: undefined for null. */
export function msOf(text: string | null | undefined): number | undefined {
  return text === null || text === undefined ? undefined : Date.parse(text);
}
