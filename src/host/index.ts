export {
  type Host,
  identify,
  isGroupGone,
  isProvenGone,
  membersOf,
  type ProcessIdentity,
  readStat,
  thisHost,
  thisProcess,
} from './process.ts';
