import { createNativeEngine, nativeProvider } from '@polygrad/backend-native';
const cpu=()=>{const c=process.cpuUsage(); return (c.user+c.system)/1e3};
for (const o of [{isa:'x64-v3'},{},{vectorBytes:32},{vectorBytes:16}, {isa:'x64-v3',vectorBytes:16}]) { const t=cpu(); createNativeEngine(o); console.log(cpu()-t); }
