/** Metrics in the text format of Prometheus. */
import type { Durations } from '../runtime/observe/metrics.ts';

export type Labels = Readonly<Record<string, string>>;
type Total = Pick<Durations, 'sumMs' | 'count'>;
export type Samples<T = number> = readonly (readonly [labels: Labels, value: T])[];

/** One metric: its help text, and its values by label. */
export type Family = { readonly help: string } & (
  | { readonly type: 'counter' | 'gauge'; readonly samples: Samples }
  | { readonly type: 'histogram'; readonly samples: Samples<Durations> }
  | { readonly type: 'summary'; readonly samples: Samples<Total> }
);

export type Families = Readonly<Record<string, Family>>;

export function counter(help: string, samples: Samples | number): Family {
  return { help, type: 'counter', samples: typeof samples === 'number' ? [[{}, samples]] : samples };
}

export function gauge(help: string, samples: Samples | number): Family {
  return { help, type: 'gauge', samples: typeof samples === 'number' ? [[{}, samples]] : samples };
}

export function histogram(help: string, samples: Samples<Durations> | Durations): Family {
  return { help, type: 'histogram', samples: 'buckets' in samples ? [[{}, samples]] : samples };
}

/** Makes one sample per figure, labelled with its name. */
export function labelled(label: string, figures: Readonly<Record<string, number>>): Samples {
  return Object.entries(figures).map(([word, value]) => [{ [label]: word }, value]);
}

export function rendered(families: Families): string {
  const blocks = Object.entries(families).map(([name, family]) =>
    [`# HELP ${name} ${family.help}`, `# TYPE ${name} ${family.type}`, ...linesOf(name, family)].join('\n'),
  );
  return `${blocks.join('\n\n')}\n`;
}

function linesOf(name: string, family: Family): readonly string[] {
  switch (family.type) {
    case 'counter':
    case 'gauge':
      return family.samples.map(([labels, value]) => line(name, labels, value));
    case 'histogram':
      return family.samples.flatMap(([labels, value]) => [
        ...bucketLines(name, labels, value),
        ...totalLines(name, labels, value),
      ]);
    case 'summary':
      return family.samples.flatMap(([labels, value]) => totalLines(name, labels, value));
  }
}

/** Converts to seconds, the unit of all times in Prometheus. */
function bucketLines(name: string, labels: Labels, { buckets, count }: Durations): readonly string[] {
  const bucket = `${name}_bucket`;
  return [
    ...buckets.map(({ atMostMs, count: below }) => line(bucket, { le: String(atMostMs / 1000), ...labels }, below)),
    line(bucket, { le: '+Inf', ...labels }, count),
  ];
}

function totalLines(name: string, labels: Labels, { sumMs, count }: Total): readonly string[] {
  return [line(`${name}_sum`, labels, sumMs / 1000), line(`${name}_count`, labels, count)];
}

function line(name: string, labels: Labels, value: number): string {
  const inside = Object.entries(labels).map(([label, word]) => `${label}="${escaped(word)}"`);
  return `${name}${inside.length === 0 ? '' : `{${inside.join(',')}}`} ${value}`;
}

function escaped(word: string): string {
  return word.replace(/["\\\n]/g, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`));
}
