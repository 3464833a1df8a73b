"""Acts on Google Workspace, on the emulator over HTTP."""
