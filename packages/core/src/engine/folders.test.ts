/** Folders of systems that are not this one. */
import { expect, it } from 'vitest';
import { cacheFolder } from './folders.ts';

it.each([
  ['linux', { HOME: '/home/me' }, '/home/me/.cache/polygrad/plans'],
  ['linux', { HOME: '/home/me', XDG_CACHE_HOME: '/caches' }, '/caches/polygrad/plans'],
  ['linux', { HOME: '/home/me', XDG_CACHE_HOME: '' }, '/home/me/.cache/polygrad/plans'],
  ['linux', { HOME: '/home/me', LOCALAPPDATA: 'C:\\local' }, '/home/me/.cache/polygrad/plans'],
  ['win32', { USERPROFILE: 'C:\\me', LOCALAPPDATA: 'C:\\me\\local' }, 'C:\\me\\local/polygrad/plans'],
  ['win32', { USERPROFILE: 'C:\\me' }, 'C:\\me/.cache/polygrad/plans'],
  ['linux', {}, './.cache/polygrad/plans'],
])('on %s with %o', (platform, env, folder) => {
  expect(cacheFolder('plans', { platform, env })).toBe(folder);
});
