/** The parts above every list: its name and figures, a field that filters it, and a way back if nothing matches. */
import type { ComponentChildren, JSX } from 'preact';
import { shortened } from '../model/text.ts';
import { address } from './app.ts';
import { Button } from './parts.tsx';

interface HeadProps {
  readonly title: string;
  readonly deeds?: ComponentChildren;
  /** The figures under the name. */
  readonly children: ComponentChildren;
}

export function ListHead({ title, deeds, children }: HeadProps): JSX.Element {
  return (
    <div class="head">
      <div class="grow">
        <h1>{title}</h1>
        <div class="under line soft num">{children}</div>
      </div>
      {deeds !== undefined && <div class="deeds line">{deeds}</div>}
    </div>
  );
}

interface HeadsProps {
  readonly class: string;
  /** The words over the columns; those of `right` are at the right edge of theirs. */
  readonly left: readonly string[];
  readonly right: readonly string[];
}

/** The heads of the columns of a list, whose rows say the same to a screen reader. */
export function Heads({ class: name, left, right }: HeadsProps): JSX.Element {
  return (
    <div class={`heads ${name}`} aria-hidden="true">
      {[...left, ...right].map((word, place) => (
        <span key={word} class={place < left.length ? undefined : 'right'}>
          {word}
        </span>
      ))}
    </div>
  );
}

interface FieldProps {
  /** The fields that are compared: `name, holder or token`. */
  readonly by: string;
  readonly hint: string;
  readonly now: string;
  /** The filter in the address; `q` if not given. */
  readonly name?: string;
  /** Whether the key F leads to it. */
  readonly isFirst?: boolean;
}

export function FilterField({ by, hint, now, name = 'q', isFirst = true }: FieldProps): JSX.Element {
  return (
    <input
      class="field"
      type="text"
      {...(isFirst && { 'data-filter': true })}
      aria-label={`Filter by ${by}`}
      placeholder={hint}
      value={now}
      onInput={(event) => address.filter({ [name]: event.currentTarget.value })}
    />
  );
}

interface NoneProps {
  /** `None of 12 locks`. */
  readonly of: string;
  readonly is?: string;
  readonly q: string;
  /** The fields in which the text was looked for. */
  readonly in: string;
}

export function NoneFits({ of, is = '', q, in: where }: NoneProps): JSX.Element {
  return (
    <p class="inside soft">
      None of {of} {is !== '' && `is ${is}`}
      {q !== '' && ` has “${shortened(q, 60)}” in its ${where}`}.{' '}
      <Button onClick={() => address.filter({ q: '', is: '' })}>Show all</Button>
    </p>
  );
}

interface ChoicesProps<T extends string> {
  /** Values and their labels. */
  readonly of: readonly (readonly [T, string])[];
  readonly now: string;
  /** The filter in the address that a choice sets, or a function that takes the choice. */
  readonly filter: string | ((one: T) => void);
}

export function Choices<T extends string>({ of, now, filter }: ChoicesProps<T>): JSX.Element {
  const set = typeof filter === 'string' ? (one: T) => address.filter({ [filter]: one }) : filter;
  return (
    <div class="choices" role="group">
      {of.map(([value, label]) => (
        <button key={value} type="button" aria-pressed={value === now} onClick={() => set(value)}>
          {label}
        </button>
      ))}
    </div>
  );
}
