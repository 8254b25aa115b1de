/** Writes the readable page of the API: plain HTML from the same descriptions, without scripts or anything from elsewhere. */
import type { Operation } from './operation.ts';
import { schemaOf } from './openapi.ts';
import { STATUS } from './problem.ts';

export interface PageFile {
  readonly type: string;
  readonly text: string;
}

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font-family:ui-monospace,monospace;font-size:.9em}pre{overflow:auto;padding:.7rem;border:1px solid #8884;border-radius:.4rem}
h2{margin-top:3rem}article{border-top:1px solid #8884;padding:.5rem 0}article h3{margin:.5rem 0}table{border-collapse:collapse}
td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}.method{font-weight:700;text-transform:uppercase}
nav ul{columns:3;padding-left:1rem}@media(max-width:40rem){nav ul{columns:1}}.role{float:right;opacity:.7}`;

export function docsPage(operations: readonly Operation[]): Readonly<Record<string, PageFile>> {
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  const body = tags.map((tag) => {
    const of = operations.filter((one) => one.tag === tag).map(article);
    return `<section><h2 id="${tag}">${tag}</h2>${of.join('')}</section>`;
  });
  const index = operations.map(
    ({ id, summary }) => `<li><a href="#${id}">${text(summary)}</a> <code>${id}</code></li>`,
  );
  const problems = Object.entries(STATUS).map(
    ([code, status]) => `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td></tr>`,
  );
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>signalbox API</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="stylesheet" href="/docs.css"></head><body>
<h1>signalbox API</h1>
<p>Send <code>Authorization: Bearer TOKEN</code> with every request; <code>signalbox token local</code> prints a token for this
machine. Bodies are JSON. Errors are problem details (RFC 9457). For programs: <a href="/openapi.json">OpenAPI 3.1</a>.</p>
<nav><ul>${index.join('')}</ul></nav>${body.join('')}
<section><h2 id="problems">problems</h2><table><tr><th>code</th><th>status</th></tr>${problems.join('')}</table></section>
</body></html>`;
  return {
    '/docs': { type: 'text/html; charset=utf-8', text: html },
    '/docs.css': { type: 'text/css; charset=utf-8', text: STYLE },
  };
}

function article(one: Operation): string {
  const { id, method, path, summary, description, role, answers, problems = [] } = one;
  const inputs = { path: one.params, query: one.query, body: one.body };
  const fields = Object.entries(inputs).flatMap(([where, schema]) =>
    schema === undefined ? [] : rows(where, schemaOf(schema, 'input') as Fields),
  );
  const table =
    fields.length === 0
      ? ''
      : `<table><tr><th>field</th><th>in</th><th>type</th><th></th></tr>${fields.join('')}</table>`;
  const told = Object.entries(answers).map(([status, { description: what }]) => `<li>${status}: ${text(what)}</li>`);
  const refusals = problems.map((code) => `<a href="#${code}"><code>${code}</code></a>`).join(', ');
  return `<article id="${id}"><span class="role">${role}</span><h3>${text(summary)}</h3>
<p><code><span class="method">${method}</span> ${text(path)}</code></p><p>${text(description)}</p>${table}
<ul>${told.join('')}${refusals === '' ? '' : `<li>refused: ${refusals}</li>`}</ul></article>`;
}

interface Fields {
  readonly properties?: Readonly<
    Record<string, { readonly type?: string; readonly enum?: readonly string[]; readonly description?: string }>
  >;
  readonly required?: readonly string[];
}

function rows(where: string, { properties = {}, required = [] }: Fields): readonly string[] {
  return Object.entries(properties).map(([name, { type, enum: words, description = '' }]) => {
    const kind = words === undefined ? (type ?? 'any') : words.join(' or ');
    const needed = required.includes(name) ? '' : ' (optional)';
    return `<tr><td><code>${text(name)}</code></td><td>${where}</td><td>${text(kind)}${needed}</td><td>${text(description)}</td></tr>`;
  });
}

function text(plain: string): string {
  return plain.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
