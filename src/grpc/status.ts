/** gRPC's status codes, and the failures made from them, from HTTP statuses and from HTTP/2 resets. */
import { CallFailure } from './transport.ts';
import { CANCEL, codeName, ENHANCE_YOUR_CALM, REFUSED_STREAM } from './http2/frames.ts';

export const OK = 0;
export const CANCELLED = 1;
export const UNKNOWN = 2;
export const INVALID_ARGUMENT = 3;
export const NOT_FOUND = 5;
export const PERMISSION_DENIED = 7;
export const RESOURCE_EXHAUSTED = 8;
export const FAILED_PRECONDITION = 9;
export const UNIMPLEMENTED = 12;
export const INTERNAL = 13;
export const UNAVAILABLE = 14;
export const DATA_LOSS = 15;
export const UNAUTHENTICATED = 16;

/** The translation that gRPC's own clients use. */
const OF_HTTP_STATUS: Readonly<Record<number, number>> = {
  400: INTERNAL,
  401: UNAUTHENTICATED,
  403: PERMISSION_DENIED,
  404: UNIMPLEMENTED,
  429: UNAVAILABLE,
  502: UNAVAILABLE,
  503: UNAVAILABLE,
  504: UNAVAILABLE,
};

const OF_RESET: Readonly<Record<number, number>> = {
  [REFUSED_STREAM]: UNAVAILABLE,
  [CANCEL]: CANCELLED,
  [ENHANCE_YOUR_CALM]: RESOURCE_EXHAUSTED,
};

/** The peer reset one exchange. Only REFUSED_STREAM says that it had not begun to handle the call. */
export function resetFailure(path: string, code: number): CallFailure {
  const isRefused = code === REFUSED_STREAM;
  const what = isRefused ? 'refused' : 'broke off';
  return new CallFailure(OF_RESET[code] ?? INTERNAL, `the server ${what} ${path} (${codeName(code)})`, isRefused);
}

/** The server answered, but not in gRPC. */
export function notGrpcFailure(path: string, httpStatus: number, contentType: string): CallFailure {
  const type = contentType === '' ? 'no content type' : `content type ${shown(contentType)}`;
  const answer = `the server answered ${path} with HTTP status ${httpStatus} and ${type}`;
  return new CallFailure(OF_HTTP_STATUS[httpStatus] ?? UNKNOWN, `${answer}, which is not gRPC`, false);
}

/** The server ended the call with this status; its own message, if it sent one. */
export function statusFailure(path: string, status: string, message: string): CallFailure {
  const code = /^\d{1,3}$/.test(status) ? Number(status) : UNKNOWN;
  const said = percentDecoded(message);
  return new CallFailure(code, said === '' ? `the server ended ${path} with status ${shown(status)}` : said, false);
}

/** Decodes gRPC's messages: UTF-8 with each byte beyond plain ASCII as `%XX`. A stray `%` stays as it is. */
export function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  const bytes = text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
