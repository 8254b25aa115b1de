/** An empty store: shows what to type first. */
import type { JSX } from 'preact';
import { CommandLine } from '../ui/parts.tsx';
import { SignalSign } from '../ui/signs.tsx';

export function FirstRun(): JSX.Element {
  return (
    <div class="first-run">
      <ClearLine />
      <h1>The line is clear</h1>
      <p class="lead">
        Nothing is held, nobody waits. This page fills by itself as soon as something uses the store. Try it in any
        shell of this repository. If the shell does not find <code>signalbox</code>, type <code>npx signalbox</code>:
      </p>
      <ol class="steps">
        <li>
          <span class="step">1</span>
          <h2>Hold a lock while a command runs</h2>
          <CommandLine>signalbox run --lock main-branch -- sleep 60</CommandLine>
        </li>
        <li>
          <span class="step">2</span>
          <h2>Run it again in a second shell</h2>
          <p class="soft">It waits in the queue, and you see it stand at the signal here.</p>
        </li>
        <li>
          <span class="step">3</span>
          <h2>Tell your coding agents</h2>
          <CommandLine>signalbox agents init</CommandLine>
        </li>
      </ol>
      <p class="soft line">
        <SignalSign is="unknown" label="" />
        <span>
          Listening for the first event. Expected something? Run <code>signalbox doctor</code> in the shell that should
          appear here.
        </span>
      </p>
    </div>
  );
}

export function ClearLine(): JSX.Element {
  return (
    <svg class="drawing" viewBox="0 0 880 96" height="96" aria-hidden="true" preserveAspectRatio="xMinYMid meet">
      <path d="M0 78h880" stroke="var(--rail)" stroke-width="4" />
      <path d="M0 78h880" stroke="var(--rail)" stroke-width="14" stroke-dasharray="2 12" opacity=".4" />
      <path d="M118 14h5v62h-5z" fill="var(--ink3)" />
      <circle cx="120.500" cy="14" r="5" fill="var(--ink3)" />
      <g transform="rotate(-45 120.500 30)">
        <path d="M120 23h40v14h-40z" fill="var(--green-arm)" />
        <path d="M146 25h5v10h-5z" fill="var(--stripe)" />
      </g>
      <circle cx="120.500" cy="30" r="4" fill="var(--bg)" stroke="var(--ink3)" stroke-width="2" />
    </svg>
  );
}
