export {
  allows,
  fitsPattern,
  isExpired,
  mayActFor,
  type Role,
  ROLES,
  type TokenEntry,
  tokenProblem,
} from './access.ts';
