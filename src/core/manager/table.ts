/**
 * A table: values by name, as a plain object, because that is what JSON can keep. Names are anything people type, so
 * `constructor` and `__proto__` are names like any other.
 */
export type Table<T> = { readonly [name: string]: T };

export function lookUp<T>(table: Table<T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Computed keys and spreading define properties of their own; assigning to `__proto__` would not. */
export function withEntry<T>(table: Table<T>, name: string, value: T): Table<T> {
  return { ...table, [name]: value };
}

/** The very same table if none of the names is in it. */
export function withoutEntries<T>(table: Table<T>, names: Iterable<string>): Table<T> {
  const leaving = new Set(names);
  if (![...leaving].some((name) => Object.hasOwn(table, name))) return table;
  return Object.fromEntries(Object.entries(table).filter(([name]) => !leaving.has(name)));
}
