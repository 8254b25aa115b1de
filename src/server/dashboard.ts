/**
 * The files of the dashboard, which scripts/bundle.mjs has made: a page, and few files with a hash of their content in the
 * name. They need no token, because they are the same for everyone; what the page then shows does.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

interface StaticFile {
  readonly type: string;
  readonly etag: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly zipped: Uint8Array<ArrayBuffer>;
  /** Its name changes with its content, so nobody has to ask again. */
  readonly isImmutable: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};

/** From the built server, and from its source. */
const FOLDERS = ['../dashboard/', '../../dist/dashboard/'];
const INDEX = 'files.json';

export class Dashboard {
  readonly #files: ReadonlyMap<string, StaticFile>;

  constructor(files: ReadonlyMap<string, StaticFile>) {
    this.#files = files;
  }

  /** Without any file if there is none, as in a checkout that was never built. */
  static here(): Dashboard {
    for (const folder of FOLDERS) {
      const read = (name: string): Buffer => readFileSync(new URL(`${folder}${name}`, import.meta.url));
      let names: readonly string[];
      try {
        names = JSON.parse(read(INDEX).toString()) as readonly string[];
      } catch {
        continue;
      }
      return new Dashboard(new Map(names.map((name) => [pathOf(name), fileOf(name, read(name))])));
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

function pathOf(name: string): string {
  return name === 'index.html' ? '/' : `/${name}`;
}

function fileOf(name: string, content: Buffer): StaticFile {
  const etag = `"${createHash('sha256').update(content).digest('hex').slice(0, 20)}"`;
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
  const isImmutable = /-[\w-]{8,}\.\w+$/.test(name);
  return { type, etag, plain: new Uint8Array(content), zipped: new Uint8Array(gzipSync(content)), isImmutable };
}
