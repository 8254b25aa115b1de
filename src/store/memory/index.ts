export type { MemoryOptions } from './engine.ts';
export { openSharedMemory } from './shared.ts';
export { openMemory } from './store.ts';
