// GitHub's own description of its REST API, in the form that npm has lightest: the types that Octokit generates from the
// OpenAPI document (@octokit/openapi-types, 5 MB; the document itself, @octokit/openapi, is above 400 MB). The types are
// read as data: only the operations that are used, and what these refer to, are parsed.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { parseSync } from 'rolldown/utils';
import type { Exchange } from 'signalbox/testing';

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

const FILE = join(dirname(createRequire(import.meta.url).resolve('@octokit/openapi-types/package.json')), 'types.d.ts');

export class Description {
  readonly #lines: readonly string[] = readFileSync(FILE, 'utf8').split('\n');
  readonly #parsed = new Map<string, Node>();
  readonly #paths = new Map<string, { readonly pattern: RegExp; readonly operations: ReadonlyMap<string, string> }>();

  constructor() {
    let path = '';
    const end = this.#lines.findIndex(
      (line) => line.startsWith('export type webhooks') || line.startsWith('export interface webhooks'),
    );
    for (const line of this.#lines.slice(0, end)) {
      const opened = /^ {2}"(\/[^"]*)": \{/.exec(line)?.[1];
      if (opened !== undefined) {
        path = opened;
        // A ref has slashes in it; nothing else has.
        const pattern = new RegExp(
          `^${path
            .replace(/[.+]/g, '\\$&')
            .replaceAll('{ref}', '.+')
            .replace(/\{[^}]+\}/g, '[^/]+')}$`,
        );
        this.#paths.set(path, { pattern, operations: new Map() });
      }
      const [, method, operation] = /^ {4}(get|put|post|delete|patch): operations\["([^"]+)"\]/.exec(line) ?? [];
      if (method !== undefined && operation !== undefined)
        (this.#paths.get(path)?.operations as Map<string, string>).set(method, operation);
    }
  }

  /** What is wrong with a request and its answer, by the description. */
  problems({ request, response }: Exchange): readonly string[] {
    const url = new URL(request.path, 'http://local');
    const method = request.method.toLowerCase();
    const path = decodeURIComponent(url.pathname);
    if (path === '/graphql') return [];
    const found = [...this.#paths].find(([, { pattern, operations }]) => pattern.test(path) && operations.has(method));
    if (found === undefined) return [`${request.method} ${path} is not described`];
    const operation = this.#operation(found[1].operations.get(method) as string);
    const parameters = this.#member(operation, 'parameters');
    const query = parameters === undefined ? undefined : this.#member(parameters, 'query');
    const known = query === undefined ? [] : this.#keys(query);
    const strange = [...url.searchParams.keys()]
      .filter((key) => !known.includes(key))
      .map((key) => `unknown parameter ${key}`);
    const asked = request.body === undefined ? [] : this.#checkBody(operation, request.body);
    return [...strange, ...asked, ...this.#checkResponse(operation, response)].map(
      (problem) => `${request.method} ${path}: ${problem}`,
    );
  }

  #checkBody(operation: Node, body: unknown): readonly string[] {
    const requestBody = this.#member(operation, 'requestBody');
    const content = requestBody === undefined ? undefined : this.#member(requestBody, 'content');
    const json = content === undefined ? undefined : this.#member(content, 'application/json');
    if (json === undefined) return ['a body is sent where none is described'];
    const keys = this.#keys(json);
    const extra = Object.keys(body as object).filter((key) => keys.length > 0 && !keys.includes(key));
    return [...extra.map((key) => `request: unknown property ${key}`), ...this.#check(json, body, 'request')];
  }

  #checkResponse(operation: Node, response: Exchange['response']): readonly string[] {
    const responses = this.#member(operation, 'responses');
    const described = responses === undefined ? undefined : this.#member(responses, String(response.status));
    // Limits, credentials and broken servers are not told of each operation by itself.
    const isEverywhere = [304, 401, 403, 429, 502].includes(response.status);
    if (described === undefined) return isEverywhere ? [] : [`status ${response.status} is not described`];
    const content = this.#member(described, 'content');
    const json = content === undefined ? undefined : this.#member(content, 'application/json');
    if (json === undefined)
      return response.body === undefined ? [] : isEverywhere ? [] : ['a body where none is described'];
    return response.body === undefined ? ['no body'] : this.#check(json, response.body, 'response');
  }

  #check(type: Node, value: unknown, at: string): readonly string[] {
    const shown = JSON.stringify(value)?.slice(0, 60) ?? 'undefined';
    const is = (isIt: boolean, what: string): readonly string[] => (isIt ? [] : [`${at}: ${shown} is not ${what}`]);
    switch (type.type) {
      case 'TSStringKeyword':
        return is(typeof value === 'string', 'a string');
      // What the description calls a 64-bit integer.
      case 'TSBigIntKeyword':
        return is(Number.isSafeInteger(value), 'a whole number');
      case 'TSNumberKeyword':
        return is(typeof value === 'number', 'a number');
      case 'TSBooleanKeyword':
        return is(typeof value === 'boolean', 'a boolean');
      case 'TSNullKeyword':
        return is(value === null, 'null');
      case 'TSUnknownKeyword':
        return [];
      case 'TSNeverKeyword':
        return is(value === undefined, 'absent');
      case 'TSLiteralType':
        return is(value === (type['literal'] as Node)['value'], JSON.stringify((type['literal'] as Node)['value']));
      case 'TSParenthesizedType':
        return this.#check(type['typeAnnotation'] as Node, value, at);
      case 'TSUnionType': {
        const tried = (type['types'] as readonly Node[]).map((one) => this.#check(one, value, at));
        const nearest = tried.toSorted((one, other) => one.length - other.length)[0] ?? [];
        return tried.some((problems) => problems.length === 0) ? [] : nearest;
      }
      case 'TSIntersectionType':
        return (type['types'] as readonly Node[]).flatMap((one) => this.#check(one, value, at));
      case 'TSArrayType':
        if (!Array.isArray(value)) return is(false, 'a list');
        return value.flatMap((one, place) => this.#check(type['elementType'] as Node, one, `${at}[${place}]`));
      case 'TSIndexedAccessType':
        return this.#check(this.#resolve(type), value, at);
      case 'TSTypeReference': {
        // `OneOf<[A, B]>`; everything else that is named is a record.
        const [tuple] = ((type['typeArguments'] as Node | null)?.['params'] ?? []) as readonly Node[];
        if ((type['typeName'] as Node)['name'] === 'OneOf' && tuple !== undefined)
          return this.#check({ type: 'TSUnionType', types: tuple['elementTypes'] }, value, at);
        return is(typeof value === 'object', 'an object');
      }
      case 'TSTypeLiteral':
        return this.#checkObject(type, value, at);
      default:
        throw new Error(`the description has ${type.type}, which this check does not know`);
    }
  }

  #checkObject(type: Node, value: unknown, at: string): readonly string[] {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at}: not an object`];
    return (type['members'] as readonly Node[]).flatMap((member) => {
      if (member.type !== 'TSPropertySignature') return [];
      const key = keyOf(member);
      const inside = (value as Record<string, unknown>)[key];
      if (inside === undefined) return member['optional'] === true ? [] : [`${at}.${key} is absent`];
      return this.#check((member['typeAnnotation'] as Node)['typeAnnotation'] as Node, inside, `${at}.${key}`);
    });
  }

  #keys(type: Node): readonly string[] {
    const plain = this.#resolve(type);
    if (plain.type === 'TSUnionType' || plain.type === 'TSIntersectionType')
      return (plain['types'] as readonly Node[]).flatMap((one) => this.#keys(one));
    return plain.type === 'TSTypeLiteral'
      ? (plain['members'] as readonly Node[]).filter(({ type: kind }) => kind === 'TSPropertySignature').map(keyOf)
      : [];
  }

  #member(type: Node, key: string): Node | undefined {
    const plain = this.#resolve(type);
    if (plain.type !== 'TSTypeLiteral') return undefined;
    const member = (plain['members'] as readonly Node[]).find(
      (one) => one.type === 'TSPropertySignature' && keyOf(one) === key,
    );
    return member === undefined ? undefined : ((member['typeAnnotation'] as Node)['typeAnnotation'] as Node);
  }

  /** `components["schemas"]["issue"]`, and what is further inside. */
  #resolve(type: Node): Node {
    if (type.type !== 'TSIndexedAccessType') return type;
    const keys: string[] = [];
    let at: Node = type;
    for (; at.type === 'TSIndexedAccessType'; at = at['objectType'] as Node)
      keys.unshift(((at['indexType'] as Node)['literal'] as Node)['value'] as string);
    const [kind = '', name = '', ...inside] = keys;
    let found = this.#component(kind, name);
    for (const key of inside) found = this.#member(found, key) ?? found;
    return this.#resolve(found);
  }

  #operation(name: string): Node {
    return this.#parse(`operations ${name}`, () =>
      this.#block(this.#lineOf('export interface operations'), `  "${name}":`),
    );
  }

  #component(kind: string, name: string): Node {
    const start = this.#lines.indexOf(`  ${kind}: {`, this.#lineOf('export interface components'));
    return this.#parse(`${kind} ${name}`, () => this.#block(start, `    "${name}":`, `    ${name}:`));
  }

  #lineOf(beginning: string): number {
    return this.#lines.findIndex((line) => line.startsWith(beginning));
  }

  /** The text of a member, from its colon to the line that ends it at the same depth. */
  #block(from: number, ...beginnings: readonly string[]): string {
    const first = this.#lines.findIndex(
      (line, place) => place > from && beginnings.some((one) => line.startsWith(one)),
    );
    if (first < 0) throw new Error(`the description has no ${beginnings[0]?.trim()}`);
    const opening = this.#lines[first] as string;
    // A union begins on the next line, one step further in.
    const depth = `${/^ */.exec(opening)?.[0] ?? ''}${opening.endsWith(':') ? '  ' : ''}`;
    const isEnd = (line: string): boolean =>
      line.startsWith(depth) && line.charAt(depth.length) !== ' ' && line.endsWith(';');
    const last = this.#lines.findIndex(
      (line, place) => place >= first && (place > first || line.endsWith(';')) && isEnd(line),
    );
    return this.#lines
      .slice(first, last + 1)
      .join('\n')
      .replace(/^\s*("[^"]*"|[\w-]+):\s*/, '');
  }

  #parse(key: string, text: () => string): Node {
    const known = this.#parsed.get(key);
    if (known !== undefined) return known;
    const { program, errors } = parseSync('description.ts', `type X = ${text()}`, { lang: 'ts' });
    if (errors.length > 0) throw new Error(`${key}: ${errors[0]?.message}`);
    const [statement] = program.body as unknown as readonly [Node];
    const parsed = statement['typeAnnotation'] as Node;
    this.#parsed.set(key, parsed);
    return parsed;
  }
}

function keyOf(member: Node): string {
  const key = member['key'] as Node;
  return String(key['name'] ?? key['value']);
}
