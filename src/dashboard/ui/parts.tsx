/** Small parts that every view uses. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { pathsOf } from '../model/chart.ts';
import type { View } from '../model/route.ts';
import { halves, shortened, visible } from '../model/text.ts';
import { clock, duration, exact } from '../model/time.ts';
import { copy, say, store } from './app.ts';
import { type Sign, SignalSign } from './signs.tsx';

/** A name that may be long or strange. `kind` stands before it, fainter. */
export function Name({ of, kind = '', class: look = '' }: { of: string; kind?: string; class?: string }): JSX.Element {
  const [first, last] = halves(of);
  // A screen reader reads the name in one piece.
  const isSplit = last !== '' || kind !== '';
  return (
    <bdi class={`name ${look}`} title={visible(of.slice(0, 1000))}>
      {isSplit && (
        <span class="unseen">
          {kind === '' ? '' : `${kind}/`}
          {first}
          {last}
        </span>
      )}
      {kind !== '' && <i aria-hidden="true">{kind}/</i>}
      <span class="begin" aria-hidden={isSplit}>
        {first}
      </span>
      {last !== '' && (
        <span class="end" aria-hidden="true">
          {last}
        </span>
      )}
    </bdi>
  );
}

/** Shows how long ago something was, ticking; the exact time on hover. */
export function Since({ at, class: name = '' }: { at: number; class?: string }): JSX.Element {
  const { now } = store.snapshot;
  const date = new Date(at);
  const iso = Number.isNaN(date.getTime()) ? undefined : date.toISOString();
  return (
    <time class={name} dateTime={iso} title={`since ${exact(at)}`}>
      {duration(now - at)}
    </time>
  );
}

export function At({ at, class: name }: { at: number; class?: string }): JSX.Element {
  return (
    <time class={name} title={exact(at)}>
      {clock(at)}
    </time>
  );
}

interface NoteProps {
  readonly sign: Sign;
  readonly class?: string;
  /** `status`: a screen reader says it when it changes. */
  readonly role?: 'status';
  readonly children: ComponentChildren;
}

/** A sentence about the state of something, after its sign. */
export function Note({ sign, class: name = '', role, children }: NoteProps): JSX.Element {
  return (
    <div class={`note line soft ${name}`} role={role}>
      <SignalSign is={sign} label="" />
      <span>{children}</span>
    </div>
  );
}

interface StripProps {
  readonly look: 'waits' | 'fails' | 'past';
  readonly sign: Sign;
  /** What the reader can do about it. */
  readonly deed?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A sentence about the whole page, over its whole width. */
export function Strip({ look, sign, deed, children }: StripProps): JSX.Element {
  return (
    <div class={`strip line ${look}`}>
      <SignalSign is={sign} label="" />
      <span class="grow">{children}</span>
      {deed}
    </div>
  );
}

interface PanelProps {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly more?: ComponentChildren;
  /** The view that shows more, and the words of the link to it. */
  readonly leads?: readonly [View, string];
  readonly class?: string;
  readonly children: ComponentChildren;
}

export function Panel({ title, aside, more, leads, class: name = '', children }: PanelProps): JSX.Element {
  return (
    <section class={`panel ${name}`}>
      <header class="line">
        <h2>{title}</h2>
        {aside !== undefined && <span class="cut faint small">{aside}</span>}
        {more}
        {leads !== undefined && (
          <a class="more soft small" href={`#/${leads[0]}`}>
            {leads[1]}
          </a>
        )}
      </header>
      {children}
    </section>
  );
}

export function CommandLine({ children }: { children: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const onClick = (): void => {
    void copy(children, 'Command').then((isDone) => {
      if (!isDone) return;
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <div class="command line">
      <span class="prompt" aria-hidden="true">
        $
      </span>
      <code class="grow" tabIndex={0}>
        {children}
      </code>
      <button type="button" class="button small" aria-label={`Copy: ${children}`} onClick={onClick}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}

interface NothingProps {
  readonly title: string;
  readonly command: string;
  /** The title of a panel around it; none if not given. */
  readonly in?: string;
  readonly children: ComponentChildren;
}

/** An empty view teaches the next command to type. */
export function Nothing({ title, command, in: panel, children }: NothingProps): JSX.Element {
  const inside = (
    <div class="nothing">
      <h2>{title}</h2>
      <p>{children}</p>
      <CommandLine>{command}</CommandLine>
    </div>
  );
  return panel === undefined ? inside : <Panel title={panel}>{inside}</Panel>;
}

/** What is known about one thing, a name and a value each; a fact that is not there is left out. */
export function Facts({ of }: { of: readonly (Fact | false)[] }): JSX.Element {
  return (
    <dl class="facts inside">
      {of.map((fact, place) => {
        if (fact === false) return null;
        const [what, is, look] = fact;
        return [
          <dt key={place}>{typeof what === 'string' ? shortened(what, 80) : what}</dt>,
          <dd key={`${place} is`} class={look} tabIndex={what === 'Metadata' ? 0 : undefined}>
            <bdi>{is}</bdi>
          </dd>,
        ];
      })}
    </dl>
  );
}

/** The name, the value and the class of the value. */
type Fact = readonly [ComponentChildren, ComponentChildren, string?];

interface ButtonProps {
  readonly onClick: () => void;
  readonly class?: string;
  readonly title?: string;
  readonly children: ComponentChildren;
}

export function Button({ onClick, class: name = 'small', title, children }: ButtonProps): JSX.Element {
  return (
    <button type="button" class={`button ${name}`} title={title} onClick={onClick}>
      {children}
    </button>
  );
}

/** Empty tracks in place, until the board is there. */
export function Blank(): JSX.Element {
  return (
    <section class="panel" aria-busy="true" aria-label="Loading">
      {Array.from({ length: 8 }, (_, row) => (
        <div class="row tracks" key={row}>
          <span class="blank" />
          <span class="track" />
          <span />
          <span />
        </div>
      ))}
    </section>
  );
}

interface DeedProps {
  readonly label: string;
  readonly onClick: () => void;
  /** Why it cannot be done; undefined if it can. */
  readonly not: string | undefined;
  readonly class?: string;
}

/** A button for roles that may use it; others see it disabled, with the reason. */
export function Deed({ label, onClick, not, class: name = '' }: DeedProps): JSX.Element {
  return (
    <button
      type="button"
      class={`button act ${name}`}
      aria-disabled={not !== undefined}
      title={not}
      // On a touch screen, a click shows the reason: there is no title to hover.
      onClick={() => (not === undefined ? onClick() : say(not))}
    >
      {label}
      {not !== undefined && <span class="unseen">. {not}</span>}
    </button>
  );
}

/** Values as a line without axes; gaps where nothing was measured. */
export function Spark({ of, label }: { of: readonly (number | undefined)[]; label: string }): JSX.Element {
  const most = Math.max(1e-9, ...of.map((value) => value ?? 0));
  return (
    <svg class="spark" viewBox={`0 -5 ${of.length - 1} 110`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path
        d={pathsOf(of, most).lines}
        fill="none"
        stroke="var(--ink3)"
        stroke-width="1.3"
        vector-effect="non-scaling-stroke"
      />
    </svg>
  );
}
