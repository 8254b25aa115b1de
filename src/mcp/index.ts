/** The MCP server, over stdio and over HTTP. */

export { type HttpOptions, mcpOverHttp, type McpOverHttp } from './http.ts';
export { LIMITS, type McpLimits } from './limits.ts';
export { serveOverStdio, serveStreams, type StdioOptions, type StreamOptions } from './stdio.ts';
export { TOOLS } from './tools/index.ts';
