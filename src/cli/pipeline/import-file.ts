/**
 * Node's own `import`, for runbooks that are programs. It has a file of its own because bundled code is not loaded by
 * Node's module loader and cannot import; this file is left out of the bundle (scripts/bundle.mjs).
 */
export function importFile(url: string): Promise<unknown> {
  return import(url) as Promise<unknown>;
}
