export {
  allows,
  fitsPattern,
  isExpired,
  mayActFor,
  type Role,
  ROLES,
  type TokenEntry,
  LONGEST_TOKEN_NAME,
  tokenHolder,
  tokenProblem,
} from './access.ts';
