/** The head of a page about one thing: its sign and name, its state, a link that can be shared, and its actions. */
import type { ComponentChildren, JSX } from 'preact';
import { address, copy } from './app.ts';
import { Button, Name } from './parts.tsx';
import { type Sign, SignalSign } from './signs.tsx';

interface Props {
  readonly sign: Sign;
  /** What the sign means; its usual word if not given. */
  readonly label?: string;
  /** A title in words, or the name of the thing after its kind. */
  readonly title: string | { readonly kind: string; readonly name: string };
  readonly under: ComponentChildren;
  /** Its actions. */
  readonly children?: ComponentChildren;
}

export function PageHead({ sign, label, title, under, children }: Props): JSX.Element {
  return (
    <div class="head">
      <SignalSign is={sign} size={22} {...(label !== undefined && { label })} />
      <div class="grow">
        <h1>{typeof title === 'string' ? title : <Name of={title.name} kind={title.kind} />}</h1>
        <div class="under line soft">{under}</div>
      </div>
      <div class="deeds line">
        <Button class="" onClick={() => void copy(address.link, 'Link')}>
          Copy link
        </Button>
        {children}
      </div>
    </div>
  );
}
