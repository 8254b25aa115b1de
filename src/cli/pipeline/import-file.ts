/**
 * Node's own `import`, for runbooks that are programs. In a file of its own: what is bundled is not loaded by Node's own
 * means and cannot import, this is and can (scripts/bundle.mjs).
 */
export function importFile(url: string): Promise<unknown> {
  return import(url) as Promise<unknown>;
}
