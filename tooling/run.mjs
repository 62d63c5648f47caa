/**
 * The commands of the repository: `node tooling/run.mjs NAME [arguments]`, called by the scripts of package.json.
 * Each one does the set-up it needs first, passes its arguments on, and ends with its target's exit code.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { deviceEnvironment } from './devices/environment.mjs';
import { becomeNode, build, install, root } from './workspace.mjs';

/**
 * `target` is a file run with Node, with `args` before those that are given, `inBrowser` the one that takes its place for arguments with --browser or --suite browser; `build` says whether the
 * workspace must be compiled before.
 */
const commands = {
  start: { target: 'apps/mnist/dist/main.js', build: true },
  conformance: {
    target: 'packages/conformance/dist/cli.js',
    inBrowser: 'tooling/browser/conformance.mjs',
    build: true,
  },
  fuzz: { target: 'tooling/fuzz.mjs', build: true },
  bench: { target: 'apps/bench/dist/main.js', inBrowser: 'apps/bench/page/main.mjs', build: true },
  playground: { target: 'apps/playground/dist/serve.js', build: true },
  doctor: { target: 'packages/polygrad/dist/cli.js', build: true, args: ['doctor'] },
  test: { target: 'tooling/test.mjs', build: false },
  'test:long': { target: 'tooling/long.mjs', build: true },
  build: { build: true },
  setup: { build: true },
};

function main([name, ...args]) {
  const command = Object.hasOwn(commands, name ?? '') ? commands[name] : undefined;
  if (command === undefined) {
    process.stderr.write(`Unknown command ${name ?? ''}: one of ${Object.keys(commands).join(', ')}\n`);
    return 2;
  }
  if (install() !== 0) {
    process.stderr.write('Installing the dependencies failed: see the lines above.\n');
    return 1;
  }
  if (command.build && build() !== 0) {
    process.stderr.write('The build failed: see the lines above.\n');
    return 1;
  }
  if (command.target === undefined) return 0;
  const asked = /(^| )--browser( |$)|--suite[ =]browser( |$)/.test(args.join(' '));
  const target = asked && command.inBrowser ? command.inBrowser : command.target;
  if (!existsSync(join(root, target))) {
    process.stderr.write(`npm run ${name}: not there yet (${target} does not exist)\n`);
    return 2;
  }
  const env = ['conformance', 'doctor', 'fuzz'].includes(name) && target === command.target ? deviceEnvironment() : {};
  return becomeNode(join(root, target), [...(command.args ?? []), ...args], { env });
}

process.exitCode = await main(process.argv.slice(2));
