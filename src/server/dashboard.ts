/**
 * Serves the files of the dashboard that scripts/bundle.mjs built: a page, and a few files whose names contain a hash of their
 * content. They need no token, because they are the same for everyone; the data that the page then reads does.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

interface StaticFile {
  readonly type: string;
  readonly etag: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly zipped: Uint8Array<ArrayBuffer>;
  /** The name changes with the content, so a browser never needs to ask for it again. */
  readonly isImmutable: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};

/** Relative to the built server, and to its source. */
const FOLDERS = ['../dashboard/', '../../dist/dashboard/'];
const INDEX = 'files.json';

export class Dashboard {
  readonly #files: ReadonlyMap<string, StaticFile>;

  constructor(files: ReadonlyMap<string, StaticFile>) {
    this.#files = files;
  }

  /** Serves nothing if there are no files, as in a checkout that was never built. */
  static here(): Dashboard {
    for (const folder of FOLDERS) {
      const read = (name: string): Buffer => readFileSync(new URL(`${folder}${name}`, import.meta.url));
      let names: readonly string[];
      try {
        names = JSON.parse(read(INDEX).toString()) as readonly string[];
      } catch {
        continue;
      }
      return new Dashboard(
        new Map(names.map((name) => [name === 'index.html' ? '/' : `/${name}`, fileOf(name, read(name))])),
      );
    }
    return new Dashboard(new Map());
  }

  get paths(): readonly string[] {
    return [...this.#files.keys()];
  }

  answer(request: Request): Response {
    const file = this.#files.get(new URL(request.url).pathname);
    if (file === undefined) return new Response(null, { status: 404 });
    const { type, etag, plain, zipped, isImmutable } = file;
    const headers: Record<string, string> = {
      'Content-Type': type,
      ETag: etag,
      Vary: 'Accept-Encoding',
      'Cache-Control': isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    };
    if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers });
    if (!/\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')) return new Response(plain, { headers });
    return new Response(zipped, { headers: { ...headers, 'Content-Encoding': 'gzip' } });
  }
}

function fileOf(name: string, content: Buffer): StaticFile {
  const etag = `"${createHash('sha256').update(content).digest('hex').slice(0, 20)}"`;
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
  const isImmutable = /-[\w-]{8,}\.\w+$/.test(name);
  return { type, etag, plain: new Uint8Array(content), zipped: new Uint8Array(gzipSync(content)), isImmutable };
}
