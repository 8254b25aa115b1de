/** Small parts that every view uses. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { pathsOf } from '../model/chart.ts';
import { halves, visible } from '../model/text.ts';
import { clock, duration, exact } from '../model/time.ts';
import { copy, say, store } from './app.ts';

/** A name that may be long or strange. `kind` stands before it, fainter. */
export function Name({ of, kind = '' }: { of: string; kind?: string }): JSX.Element {
  const [first, last] = halves(of);
  // A screen reader reads the name in one piece.
  const isSplit = last !== '' || kind !== '';
  return (
    <bdi class="name" title={visible(of.slice(0, 1000))}>
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

export function At({ at }: { at: number }): JSX.Element {
  return <time title={exact(at)}>{clock(at)}</time>;
}

interface PanelProps {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly more?: ComponentChildren;
  readonly class?: string;
  readonly children: ComponentChildren;
}

export function Panel({ title, aside, more, class: name = '', children }: PanelProps): JSX.Element {
  return (
    <section class={`panel ${name}`}>
      <header>
        <h2>{title}</h2>
        {aside !== undefined && <span class="aside">{aside}</span>}
        {more}
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
    <div class="command">
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

/** An empty view teaches the next command to type. */
export function Nothing(props: { title: string; children: ComponentChildren; command?: string }): JSX.Element {
  const { title, children, command } = props;
  return (
    <div class="nothing">
      <h2>{title}</h2>
      <p>{children}</p>
      {command !== undefined && <CommandLine>{command}</CommandLine>}
    </div>
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
