/** The HTTP server. */

export { type Mounted, type RequestNote, type Server, serverOf, type ServerOptions } from './app.ts';
export { listen, type Listening, type ListenOptions, MOST_CONNECTIONS, type TlsFiles } from './listen.ts';
export { serverLog } from './log.ts';
export { openApi } from './openapi.ts';
export type { Operation } from './operation.ts';
export { OPERATIONS } from './routes/index.ts';
export { serve, type ServeOptions, type Serving } from './serve.ts';
