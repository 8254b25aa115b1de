// A memory service over MCP, in a process of its own: `node memory-server.mjs` speaks over stdin and stdout, with a port
// over HTTP. It keeps texts under keys, as the tool `memory_usage` does.
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const kept = new Map();

function service() {
  const server = new McpServer({ name: 'memory', version: '1.0.0' });
  const inputSchema = z.object({
    action: z.enum(['store', 'retrieve', 'delete']),
    key: z.string(),
    namespace: z.string(),
    value: z.string().optional(),
    ttl: z.number().optional(),
  });
  server.registerTool('memory_usage', { description: 'Keeps texts.', inputSchema }, ({ action, key, value }) => {
    if (action === 'store') kept.set(key, value);
    if (action === 'delete') kept.delete(key);
    return { content: [{ type: 'text', text: JSON.stringify({ value: kept.get(key) ?? null }) }] };
  });
  return server;
}

if (process.argv[2] === 'http') {
  const { fetch } = createMcpHandler(service);
  const answer = getRequestListener((request) => fetch(request));
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
} else {
  serveStdio(service);
}
