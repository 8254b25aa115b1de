/** The description of the API as tests read it, and what of an answer does not fit it. */

export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly minItems?: number;
  readonly pattern?: string;
  readonly format?: string;
}

export interface Described {
  readonly operationId: string;
  readonly parameters?: readonly { name: string; in: string; required: boolean; schema: Schema }[];
  readonly requestBody?: { content: { 'application/json': { schema: Schema } } };
  readonly responses: Readonly<
    Record<string, { description: string; content: Readonly<Record<string, { schema: Schema }>> }>
  >;
}

/** What is wrong with a value, by the schema; undefined if nothing is. */
export function misfit(schema: Schema, value: unknown, where = 'it'): string | undefined {
  if (schema.const !== undefined) return value === schema.const ? undefined : `${where} is not ${String(schema.const)}`;
  if (schema.enum !== undefined) return schema.enum.includes(value) ? undefined : `${where} is none of the words`;
  if (schema.anyOf !== undefined) {
    return schema.anyOf.some((one) => misfit(one, value) === undefined) ? undefined : `${where} fits none`;
  }
  if (schema.type === undefined) return undefined;
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const fits = [schema.type].flat().some((type) => type === kind || (type === 'integer' && Number.isInteger(value)));
  if (!fits) return `${where} is of the type ${kind}, not ${String(schema.type)}`;
  if (Array.isArray(value)) {
    return value
      .map((one, at) => misfit(schema.items ?? {}, one, `${where}[${at}]`))
      .find((found) => found !== undefined);
  }
  if (kind !== 'object') return undefined;
  const fields = value as Record<string, unknown>;
  const lacking = (schema.required ?? []).find((key) => !(key in fields));
  if (lacking !== undefined) return `${where}.${lacking} is missing`;
  for (const [key, one] of Object.entries(fields)) {
    const of = schema.properties?.[key];
    if (of === undefined && schema.additionalProperties === false) return `${where}.${key} is not described`;
    const found = of === undefined ? undefined : misfit(of, one, `${where}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The codes of the problems that it may answer with this status. */
export function codesOf({ responses }: Described, status: number): readonly string[] {
  return responses[String(status)]?.description.split(', ') ?? [];
}
