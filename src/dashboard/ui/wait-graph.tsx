/** Who waits for whom, as a drawing. */
import type { JSX } from 'preact';
import { routeOf } from '../model/needs.ts';
import { middleCut } from '../model/text.ts';
import type { Graph, GraphNode } from '../model/waits.ts';
import { ArrowTip, Label } from './signs.tsx';

const WIDTH = 132;
const HEIGHT = 32;
const STEP = 172;
const ROW = 40;

export function WaitGraph({ graph }: { graph: Graph }): JSX.Element {
  const width = (graph.columns - 1) * STEP + WIDTH + 4;
  const height = graph.rows * ROW + 28;
  const places = new Map(graph.nodes.map((node) => [node.key, node]));
  const told = graph.nodes.map(({ label, detail }) => `${label}${detail === '' ? '' : ` (${detail})`}`).join(', then ');
  return (
    <div class="scrolls inside" tabIndex={0} role="group" aria-label="Who waits for whom">
      <svg
        class="drawing"
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${width}px`, minWidth: `${Math.min(width, 560)}px`, margin: '0 auto' }}
        role="group"
        aria-label={told}
      >
        <ArrowTip id="tip" fill="var(--ink3)" />
        {graph.edges.map(({ from, to, label, isDashed }) => {
          const [one, other] = [places.get(from), places.get(to)];
          if (one === undefined || other === undefined) return null;
          const [x1, y1] = [one.column * STEP + 2 + WIDTH, one.row * ROW + 2 + HEIGHT / 2];
          const [x2, y2] = [other.column * STEP, other.row * ROW + 2 + HEIGHT / 2];
          const middle = (x1 + x2) / 2;
          return (
            <g key={`${from} ${to}`}>
              <path
                {...{ fill: 'none', stroke: 'var(--ink3)', 'stroke-width': 1.4, 'marker-end': 'url(#tip)' }}
                d={`M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`}
                stroke-dasharray={isDashed ? '3 3' : undefined}
              />
              {label !== '' && (
                <Label {...{ x: middle, y: Math.max(y1, y2) + 28, anchor: 'middle', size: 12 }}>{label}</Label>
              )}
            </g>
          );
        })}
        {graph.nodes.map((node) => (
          <NodeShape key={node.key} node={node} />
        ))}
      </svg>
    </div>
  );
}

const FILL = {
  waiter: ['var(--raised)', 'var(--line2)'],
  head: ['var(--raised)', 'var(--ink3)'],
  resource: ['var(--blue-fill)', 'var(--blue-line)'],
  holder: ['var(--raised)', 'var(--line2)'],
  root: ['var(--amber-fill)', 'var(--amber)'],
} as const;

function NodeShape({ node }: { node: GraphNode }): JSX.Element {
  const [fill, stroke] = FILL[node.kind];
  const shape = (
    <g transform={`translate(${node.column * STEP + 2} ${node.row * ROW + 2})`}>
      <title>{node.label}</title>
      <rect
        {...{ width: WIDTH, height: HEIGHT, fill, stroke }}
        rx={node.kind === 'resource' ? 3 : HEIGHT / 2}
        stroke-width={node.kind === 'root' ? 1.6 : 1.1}
      />
      <Label x={WIDTH / 2} y={node.detail === '' ? 21 : 14} anchor="middle" size={14} weight={500} fill="var(--ink)">
        {middleCut(node.label, 15)}
      </Label>
      {node.detail !== '' && <Label {...{ x: WIDTH / 2, y: 27, anchor: 'middle', size: 12 }}>{node.detail}</Label>}
    </g>
  );
  return node.resource === undefined ? shape : <a href={`#${routeOf(node.resource)}`}>{shape}</a>;
}
