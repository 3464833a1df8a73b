// Runs the generated script with stand-ins for Google's services: node apps_script.js SCRIPT FUNCTIONS [JSON of the sheet]
"use strict";
const fs = require("fs");
const crypto = require("crypto");
const vm = require("vm");

const [script, names, given] = process.argv.slice(2);
const world = given ? JSON.parse(given) : { sheets: [] };
const calls = [];
const alerts = [];
const menu = [];
const triggers = [];

function sheetOf(told) {
  const range = (row, column, rows = 1, columns = 1) => ({
    getValues: () => told.values.slice(row - 1, row - 1 + rows).map((each) => each.slice(column - 1, column - 1 + columns)),
    setValue: (value) => { told.values[row - 1][column - 1] = value; },
    getRow: () => row,
    getLastRow: () => row + rows - 1,
  });
  return {
    getSheetId: () => told.id,
    getLastColumn: () => told.values[0].length,
    getRange: range,
    getDataRange: () => range(1, 1, told.values.length, told.values[0].length),
    getActiveRangeList: () => ({ getRanges: () => (told.selected || []).map(([first, last]) => range(first, 1, last - first + 1)) }),
  };
}

const sheets = world.sheets.map(sheetOf);
const builder = { addItem: (text, fn) => { menu.push(fn); return builder; }, addSeparator: () => builder, addToUi: () => {} };
const trigger = (fn) => {
  const made = { getHandlerFunction: () => fn };
  const kind = (word) => () => ({ create: () => { triggers.push([fn, word]); return made; } });
  return { forSpreadsheet: () => ({ onEdit: kind("edit"), onFormSubmit: kind("form") }) };
};
const context = vm.createContext({
  console, JSON, Math, Date,
  SpreadsheetApp: {
    getUi: () => ({ createMenu: () => builder, alert: (text) => alerts.push(text) }),
    getActive: () => ({ getSheets: () => sheets }),
    getActiveSheet: () => sheets[world.active || 0],
    flush: () => {},
  },
  ScriptApp: { getProjectTriggers: () => [], deleteTrigger: () => {}, newTrigger: trigger },
  Utilities: {
    getUuid: () => crypto.randomUUID(),
    // Bytes are signed in Apps Script.
    computeHmacSha256Signature: (value, key) => [...crypto.createHmac("sha256", key).update(value).digest()].map((b) => (b > 127 ? b - 256 : b)),
  },
  UrlFetchApp: {
    fetch: (url, options) => {
      // The test sends it, as it is.
      const headers = { "Content-Type": options.contentType, ...options.headers };
      calls.push({ url, method: options.method.toUpperCase(), headers, body: options.payload });
      return { getResponseCode: () => 202 };
    },
  },
});
vm.runInContext(fs.readFileSync(script, "utf8"), context);
const answers = names.split(" ").map((name) => vm.runInContext(`${name}({})`, context) ?? null);
console.log(JSON.stringify({ answers, calls, alerts, menu, triggers, sheets: world.sheets }));
