import { defineConfig } from "vitest/config";
import { glossary, lessons } from "./vite.config.ts";

export default defineConfig({ plugins: [lessons(), glossary()], test: { include: ["test/**/*.test.{ts,js}"], testTimeout: 120_000 } });
