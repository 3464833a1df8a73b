"""The Apps Script of a panel: a menu, and a signed call that says "look now". Hints only: nothing depends on it.

The menu types the same words into the same cells as people do. The call is signed as a hook's is: HMAC-SHA-256 over
time, nonce and body, with a secret that is derived from the ledger's keyring for this one purpose.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from quire.client.client import Client
from quire.surfaces.panel.inbox import normal
from quire.surfaces.panel.layout import COMMAND, PANEL_ID, STOP_LABEL, TABLE_ID
from quire.surfaces.panel.tables.again import AGAIN
from quire.surfaces.waking import wake_secret

_SCRIPT = r"""/**
 * Quire's script for this sheet. Extensions > Apps Script, paste it there, save, then run quireInstall once.
 * It wakes Quire when somebody edits or a form is sent. Without it everything works, only a little later.
 */
const QUIRE = __SETTINGS__;

function onOpen() {
  SpreadsheetApp.getUi()
    .createMenu('Quire')
    .addItem('Approve selected rows', 'quireApprove')
    .addItem('Retry selected rows', 'quireRetry')
    .addItem('Cancel selected rows', 'quireCancel')
    .addItem('Run selected rows again', 'quireAgain')
    .addSeparator()
    .addItem('STOP everything', 'quireHalt')
    .addItem('Look now', 'quireWake')
    .addSeparator()
    .addItem('Install triggers', 'quireInstall')
    .addToUi();
}

/** Simple triggers may not call out: these two may. */
function quireInstall() {
  const book = SpreadsheetApp.getActive();
  ScriptApp.getProjectTriggers()
    .filter(function (trigger) { return /^quireOn/.test(trigger.getHandlerFunction()); })
    .forEach(function (trigger) { ScriptApp.deleteTrigger(trigger); });
  ScriptApp.newTrigger('quireOnEdit').forSpreadsheet(book).onEdit().create();
  ScriptApp.newTrigger('quireOnFormSubmit').forSpreadsheet(book).onFormSubmit().create();
}

function quireOnEdit(event) { return quireWake_('edit'); }
function quireOnFormSubmit(event) { return quireWake_('form'); }
function quireWake() { return quireWake_('menu'); }
function quireApprove() { quireType_('APPROVE'); }
function quireRetry() { quireType_('RETRY'); }
function quireCancel() { quireType_('CANCEL'); }

/** Type the request into the status cells of the selected rows of a table, below its header. */
function quireAgain() {
  const sheet = SpreadsheetApp.getActiveSheet();
  const top = sheet.getDataRange().getValues().slice(0, 30);
  let header = -1, column = -1;
  for (let row = 0; row < top.length && column < 0; row++) {
    column = top[row].findIndex(function (text) { return QUIRE.status.indexOf(quireName_(text)) >= 0; });
    header = row;
  }
  if (column < 0) {
    SpreadsheetApp.getUi().alert('Select rows of a table that Quire runs first.');
    return;
  }
  quireFill_(sheet, column + 1, header + 2, QUIRE.again);
}

function quireName_(text) {
  return String(text).trim().toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '_').replace(/^_+|_+$/g, '');
}

/** Type a word into the command cells of the selected rows. */
function quireType_(word) {
  const sheet = SpreadsheetApp.getActiveSheet();
  if (sheet.getSheetId() !== QUIRE.table) {
    SpreadsheetApp.getUi().alert('Select rows of the state table first.');
    return;
  }
  const top = sheet.getDataRange().getValues().slice(0, 50);
  const header = top.findIndex(function (row) { return row.indexOf(QUIRE.command) >= 0; });
  const column = header < 0 ? 0 : top[header].indexOf(QUIRE.command) + 1;
  if (column === 0) {
    SpreadsheetApp.getUi().alert('There is no column ' + QUIRE.command + '.');
    return;
  }
  quireFill_(sheet, column, header + 2, word);
}

/** Type a word into this column of the selected rows, not above the first row with data. */
function quireFill_(sheet, column, first, word) {
  const ranges = sheet.getActiveRangeList().getRanges();
  ranges.forEach(function (range) {
    for (let row = Math.max(first, range.getRow()); row <= range.getLastRow(); row++) {
      sheet.getRange(row, column).setValue(word);
    }
  });
  SpreadsheetApp.flush();
  quireWake_('menu');
}

/** Tick the STOP box. */
function quireHalt() {
  const sheet = SpreadsheetApp.getActive().getSheets().filter(function (each) {
    return each.getSheetId() === QUIRE.panel;
  })[0];
  const values = sheet ? sheet.getDataRange().getValues() : [];
  for (let row = 0; row < values.length; row++) {
    const column = values[row].indexOf(QUIRE.stop);
    if (column >= 0) {
      sheet.getRange(row + 1, column + 2).setValue(true);
      SpreadsheetApp.flush();
      quireWake_('halt');
      return;
    }
  }
  SpreadsheetApp.getUi().alert('The STOP box is not there; use quire halt.');
}

/** A signed call that says: look now. */
function quireWake_(why) {
  const body = JSON.stringify({ why: why });
  const time = String(Math.floor(Date.now() / 1000));
  const nonce = Utilities.getUuid();
  const signed = Utilities.computeHmacSha256Signature(time + '.' + nonce + '.' + body, QUIRE.secret);
  const signature = signed.map(function (byte) {
    return ('0' + (byte & 255).toString(16)).slice(-2);
  }).join('');
  try {
    return UrlFetchApp.fetch(QUIRE.url, {
      method: 'post',
      contentType: 'application/json',
      payload: body,
      headers: { 'X-Quire-Time': time, 'X-Quire-Nonce': nonce, 'X-Quire-Signature': signature },
      muteHttpExceptions: true,
    }).getResponseCode();
  } catch (error) {
    console.warn('Quire was not reached; it looks by itself: ' + error);
    return 0;
  }
}
"""


def script_of(client: Client, url: str, status: Sequence[str] = (), command: str = COMMAND) -> str:
    """The script for this ledger's panel, which calls this address. ``status``: headers of tables' status columns."""
    settings = {
        "url": url,
        "secret": wake_secret(client.keyring),
        "table": TABLE_ID,
        "panel": PANEL_ID,
        "command": command,
        "stop": STOP_LABEL,
        "status": sorted({normal(name) for name in status}),
        "again": AGAIN,
    }
    return _SCRIPT.replace("__SETTINGS__", json.dumps(settings, indent=2))
