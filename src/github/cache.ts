/** Caches lock information for display: in a memory service over MCP, or in a signalbox store. */
import type { LockMetadata } from '../core/github/index.ts';
import { memoryConnection, type MemoryServer } from './memory-server.ts';
import type { Signalbox } from '../runtime/signalbox.ts';

/** A lock in the cache. */
export interface CachedLock {
  /** The number of the issue. */
  readonly issue: number;
  /** The fencing token. */
  readonly token: number;
  /** Who holds it, and for what. */
  readonly lock: LockMetadata;
}

/** A cache is only a hint: if it throws, the manager writes a debug line and goes on. */
export interface LockCache {
  /** Stores a lock for this time. */
  set(lock: CachedLock, ttlMs: number): Promise<void>;
  /** The lock of an issue; null if it is not known. */
  get(issue: number): Promise<CachedLock | null>;
  /** Forgets the lock of an issue. */
  delete(issue: number): Promise<void>;
  /** Closes its connections; called when the manager is closed. */
  close?(): Promise<void>;
}

/** Calls a tool of an MCP server. */
export type CallTool = (name: string, args: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** How to call the memory service. */
export interface MemoryCacheOptions {
  /** The tool; `memory_usage` if not given. */
  readonly tool?: string;
  /** The namespace; `distributed-locks` if not given. */
  readonly namespace?: string;
  /** The names of the tool's arguments. */
  readonly names?: Partial<Record<'action' | 'key' | 'value' | 'namespace' | 'ttl', string>>;
  /** The unit of the tool's TTL. Default: milliseconds. */
  readonly ttlUnit?: 'ms' | 's';
}

/** The namespace of cached locks. */
export const CACHE_NAMESPACE = 'distributed-locks';

/**
 * Keeps locks in a memory service over MCP: give a command that starts it, its URL, or your own function. For the first two,
 * install `@modelcontextprotocol/client`.
 */
export function memoryCache(service: CallTool | MemoryServer, options: MemoryCacheOptions = {}): LockCache {
  const { call, close } =
    typeof service === 'function' ? { call: service, close: undefined } : memoryConnection(service);
  const { tool = 'memory_usage', namespace = CACHE_NAMESPACE, names = {}, ttlUnit = 'ms' } = options;
  const ask = (action: string, issue: number, rest: Readonly<Record<string, unknown>> = {}): Promise<unknown> => {
    const args = { action, key: keyOf(issue), namespace, ...rest };
    return call(
      tool,
      Object.fromEntries(
        Object.entries(args).map(([name, value]) => [names[name as keyof typeof names] ?? name, value]),
      ),
    );
  };
  return {
    async set(lock, ttlMs) {
      await ask('store', lock.issue, {
        value: JSON.stringify(lock),
        ttl: ttlUnit === 's' ? Math.ceil(ttlMs / 1000) : ttlMs,
      });
    },
    async get(issue) {
      return cachedIn(textIn(await ask('retrieve', issue)));
    },
    async delete(issue) {
      await ask('delete', issue);
    },
    ...(close !== undefined && { close }),
  };
}

/** Keeps locks under plain keys of a store. These keys do not expire, so the value says until when it is valid. */
export function storeCache(box: Pick<Signalbox, 'bus'>, now: () => number = Date.now): LockCache {
  const place = (issue: number): string => `${CACHE_NAMESPACE}/${keyOf(issue)}`;
  return {
    async set(lock, ttlMs) {
      await box.bus.put(place(lock.issue), JSON.stringify({ ...lock, until: now() + ttlMs }));
    },
    async get(issue) {
      const text = textIn(await box.bus.get(place(issue)));
      const until = (parsed(text ?? '') as { readonly until?: unknown } | undefined)?.until;
      return typeof until === 'number' && until > now() ? cachedIn(text) : null;
    },
    async delete(issue) {
      await box.bus.transaction([], [{ do: 'delete', key: place(issue) }], []);
    },
  };
}

function keyOf(issue: number): string {
  return `lock:issue-${issue}`;
}

/** Reads the text itself, or the result of a tool: `{content: [{type: 'text', text}]}`, perhaps with `{value}` in it. */
function textIn(result: unknown): string | undefined {
  if (typeof result === 'string') return result;
  const { value, content } = (result ?? {}) as {
    readonly value?: unknown;
    readonly content?: readonly { readonly text?: unknown }[];
  };
  if (typeof value === 'string') return value;
  const text = content?.[0]?.text;
  if (typeof text !== 'string') return undefined;
  const inner = parsed(text) as { readonly value?: unknown } | undefined;
  return typeof inner?.value === 'string' ? inner.value : text;
}

function cachedIn(text: string | undefined): CachedLock | null {
  const value = text === undefined ? undefined : (parsed(text) as Partial<CachedLock> | undefined);
  const isSound =
    typeof value === 'object' && value !== null && Number.isSafeInteger(value.issue) && typeof value.lock === 'object';
  if (!isSound) return null;
  const { issue, token = 0, lock } = value as CachedLock;
  return { issue, token, lock };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
