/** Runs a program by its name: `node apps/examples/dist/main.js vae`. */
import '@polygrad/backend-cpu';
import { programs } from './programs.ts';

const [name = ''] = process.argv.slice(2);
const program = Object.hasOwn(programs, name) ? programs[name as keyof typeof programs] : undefined;
if (program === undefined) {
  console.error(`No program is named '${name}': there are ${Object.keys(programs).join(', ')}`);
  process.exitCode = 1;
} else {
  const start = performance.now();
  const { losses, note } = await program();
  console.log(
    `${losses.map((loss) => loss.toPrecision(3)).join(' ')}\n${note}\n${((performance.now() - start) / 1000).toFixed(1)} s`,
  );
}
