// Engines load parts of themselves when they need them, which Vite's default format of workers cannot do.
export default { worker: { format: 'es' } };
