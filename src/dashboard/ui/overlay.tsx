/** What lies over the page: the palette, the map of the keys, dialogs. The focus stays in it until it closes. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Snapshot } from '../live/store.ts';
import { KEY_MAP } from '../model/keys.ts';
import { searched } from '../model/search.ts';
import { shortened } from '../model/text.ts';
import { address, copy, currentOverlay, show, signIn } from './app.ts';
import { DeedDialog } from './deed-dialog.tsx';
import { toggleTheme } from './shell.tsx';

export function Overlays({ snapshot }: { snapshot: Snapshot }): JSX.Element | null {
  const overlay = currentOverlay();
  switch (overlay.kind) {
    case 'none':
      return null;
    case 'palette':
      return <Palette snapshot={snapshot} />;
    case 'keys':
      return <KeyMap />;
    case 'ask':
      return <DeedDialog snapshot={snapshot} deed={overlay.deed} />;
  }
}

interface DialogProps {
  readonly title: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}

const FOCUSABLE = 'a[href], button:not([disabled]), input, select, textarea, [tabindex="0"]';

export function Dialog({ title, class: name = '', children }: DialogProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const first = box.current?.querySelector<HTMLElement>('[data-first]') ?? box.current;
    first?.focus();
  }, []);
  const stay = (event: KeyboardEvent): void => {
    if (event.key !== 'Tab') return;
    const all = [...(box.current?.querySelectorAll<HTMLElement>(FOCUSABLE) ?? [])];
    const [first, last] = [all[0], all.at(-1)];
    const from = event.shiftKey ? first : last;
    if (document.activeElement !== from && box.current?.contains(document.activeElement) === true) return;
    event.preventDefault();
    (event.shiftKey ? last : first)?.focus();
  };
  const outside = (event: Event): void => void (event.target === event.currentTarget && show({ kind: 'none' }));
  return (
    <div class="over" onMouseDown={outside}>
      <div
        ref={box}
        class={`dialog ${name}`}
        role="dialog"
        aria-modal="true"
        aria-label={title}
        tabIndex={-1}
        onKeyDown={stay}
      >
        {children}
      </div>
    </div>
  );
}

function Palette({ snapshot }: { snapshot: Snapshot }): JSX.Element {
  const [text, setText] = useState('');
  const [place, setPlace] = useState(0);
  const found = searched(snapshot.state, text);
  const at = Math.min(place, found.length - 1);
  const choose = (index: number): void => {
    const { leads } = found[index] ?? {};
    if (leads === undefined) return;
    show({ kind: 'none' });
    if (leads === 'do:theme') toggleTheme();
    else if (leads === 'do:link') void copy(address.link, 'Link');
    else if (leads === 'do:keys') show({ kind: 'keys' });
    else if (leads === 'do:leave') signIn('');
    else {
      address.go(leads);
      document.getElementById('main')?.focus();
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      setPlace((at + by + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      choose(at);
    }
  };
  useEffect(() => document.getElementById(`found-${at}`)?.scrollIntoView({ block: 'nearest' }), [at]);
  return (
    <Dialog title="Search and commands" class="palette">
      <input
        data-first
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={at < 0 ? undefined : `found-${at}`}
        aria-label="Find a lock, holder, token or command"
        placeholder="Find a lock, holder, token or command"
        value={text}
        onInput={(event) => (setText(event.currentTarget.value), setPlace(0))}
        onKeyDown={onKeyDown}
      />
      <div role="listbox" id="found" aria-label="Found">
        {found.map(({ group, label, detail, leads }, index) => (
          <div key={`${group} ${leads} ${label}`} role="presentation">
            {found[index - 1]?.group !== group && (
              <div class="group" role="presentation">
                {group}
              </div>
            )}
            <div
              class="line"
              role="option"
              id={`found-${index}`}
              aria-selected={index === at}
              onMouseMove={() => setPlace(index)}
              onClick={() => choose(index)}
            >
              <bdi class="cut">{shortened(label, 120)}</bdi>
              <bdi class="detail faint small cut">{shortened(detail, 120)}</bdi>
            </div>
          </div>
        ))}
        {found.length === 0 && <p class="group">Nothing has “{shortened(text, 60)}” in its name.</p>}
      </div>
    </Dialog>
  );
}

function KeyMap(): JSX.Element {
  return (
    <Dialog title="Keys">
      <div class="body">
        <h2>Keys</h2>
        <dl class="map">
          {KEY_MAP.map(([keys, does]) => [
            <dt key={keys}>
              {keys.split(' ').map((key) => (
                <>
                  <kbd>{key}</kbd>{' '}
                </>
              ))}
            </dt>,
            <dd key={does} class="soft">
              {does}
            </dd>,
          ])}
        </dl>
        <div class="answers">
          <button type="button" class="button" data-first onClick={() => show({ kind: 'none' })}>
            Close <kbd>Esc</kbd>
          </button>
        </div>
      </div>
    </Dialog>
  );
}
