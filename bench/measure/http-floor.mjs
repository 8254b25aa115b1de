/** A bare hono route that answers JSON to JSON: what HTTP costs before signalbox does anything. */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const app = new Hono();
app.post('/v1/locks/:name', async (context) => {
  await context.req.json();
  return context.json({ outcome: 'acquired', resource: `lock/${context.req.param('name')}`, token: 1 });
});
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
});
