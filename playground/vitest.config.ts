import { defineConfig } from "vitest/config";
import { lessons } from "./vite.config.ts";

export default defineConfig({ plugins: [lessons()], test: { include: ["test/**/*.test.{ts,js}"], testTimeout: 120_000 } });
