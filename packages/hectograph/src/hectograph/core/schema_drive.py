"""Field names and types of Google Drive; made by ``schema.py`` from the discovery document."""

MESSAGES = """
About appInstalled:b canCreateDrives:b canCreateTeamDrives:b driveThemes:[@AboutDriveThemes exportFormats:{[s
  folderColorPalette:[s importFormats:{[s kind:s maxImportSizes:{l maxUploadSize:l storageQuota:@AboutStorageQuota
  teamDriveThemes:[@AboutTeamDriveThemes user:@User
AboutDriveThemes backgroundImageLink:s colorRgb:s id:s
AboutStorageQuota limit:l usage:l usageInDrive:l usageInDriveTrash:l
AboutTeamDriveThemes backgroundImageLink:s colorRgb:s id:s
AccessProposal createTime:s fileId:s proposalId:s recipientEmailAddress:s requestMessage:s requesterEmailAddress:s
  rolesAndViews:[@AccessProposalRoleAndView
AccessProposalRoleAndView role:s view:s
AddReviewer addedReviewerEmail:s
App authorized:b createInFolderTemplate:s createUrl:s hasDriveWideScope:b icons:[@AppIcons id:s installed:b kind:s
  longDescription:s name:s objectType:s openUrlTemplate:s primaryFileExtensions:[s primaryMimeTypes:[s productId:s
  productUrl:s secondaryFileExtensions:[s secondaryMimeTypes:[s shortDescription:s supportsCreate:b supportsImport:b
  supportsMultiOpen:b supportsOfflineCreate:b useByDefault:b
AppIcons category:s iconUrl:s size:i
AppList defaultAppIds:[s items:[@App kind:s selfLink:s
Approval approvalId:s approvedRevisionId:s completeTime:s createTime:s dueTime:s fileContentChangeBehavior:=E0
  initiator:@User kind:s modifyTime:s reviewerResponses:[@ReviewerResponse status:=E1 targetFileId:s
ApprovalList items:[@Approval kind:s nextPageToken:s
ApproveApprovalRequest message:s
CancelApprovalRequest message:s
Change changeType:s drive:@Drive driveId:s file:@File fileId:s kind:s removed:b teamDrive:@TeamDrive teamDriveId:s
  time:s type:s
ChangeList changes:[@Change kind:s newStartPageToken:s nextPageToken:s
Channel address:s expiration:l id:s kind:s params:{s payload:b resourceId:s resourceUri:s token:s type:s
ClientEncryptionDetails decryptionMetadata:@DecryptionMetadata encryptionState:s
Comment anchor:s assigneeEmailAddress:s author:@User content:s createdTime:s deleted:b htmlContent:s id:s kind:s
  mentionedEmailAddresses:[s modifiedTime:s quotedFileContent:@CommentQuotedFileContent replies:[@Reply resolved:b
CommentApprovalRequest message:s
CommentList comments:[@Comment kind:s nextPageToken:s
CommentQuotedFileContent mimeType:s value:s
ContentRestriction ownerRestricted:b readOnly:b reason:s restrictingUser:@User restrictionTime:s systemRestricted:b
  type:s
DeclineApprovalRequest message:s
DecryptionMetadata aes256GcmChunkSize:s encryptionResourceKeyHash:s jwt:s kaclsId:l kaclsName:s keyFormat:s
  wrappedKey:s
DownloadRestriction restrictedForReaders:b restrictedForWriters:b
DownloadRestrictionsMetadata effectiveDownloadRestrictionWithContext:@DownloadRestriction
  itemDownloadRestriction:@DownloadRestriction
Drive backgroundImageFile:@DriveBackgroundImageFile backgroundImageLink:s capabilities:@DriveCapabilities colorRgb:s
  createdTime:s hidden:b id:s kind:s name:s orgUnitId:s restrictions:@DriveRestrictions themeId:s
DriveBackgroundImageFile id:s width:d xCoordinate:d yCoordinate:d
DriveCapabilities canAddChildren:b canChangeCopyRequiresWriterPermissionRestriction:b
  canChangeDomainUsersOnlyRestriction:b canChangeDownloadRestriction:b canChangeDriveBackground:b
  canChangeDriveMembersOnlyRestriction:b canChangeSharingFoldersRequiresOrganizerPermissionRestriction:b canComment:b
  canCopy:b canDeleteChildren:b canDeleteDrive:b canDownload:b canEdit:b canListChildren:b canManageMembers:b
  canReadRevisions:b canRename:b canRenameDrive:b canResetDriveRestrictions:b canShare:b canTrashChildren:b
DriveList drives:[@Drive kind:s nextPageToken:s
DriveRestrictions adminManagedRestrictions:b copyRequiresWriterPermission:b domainUsersOnly:b
  downloadRestriction:@DownloadRestriction driveMembersOnly:b sharingFoldersRequiresOrganizerPermission:b
File appProperties:{s capabilities:@FileCapabilities clientEncryptionDetails:@ClientEncryptionDetails
  contentHints:@FileContentHints contentRestrictions:[@ContentRestriction copyRequiresWriterPermission:b createdTime:s
  description:s downloadRestrictions:@DownloadRestrictionsMetadata driveId:s explicitlyTrashed:b exportLinks:{s
  fileExtension:s folderColorRgb:s fullFileExtension:s hasAugmentedPermissions:b hasThumbnail:b headRevisionId:s
  iconLink:s id:s imageMediaMetadata:@FileImageMediaMetadata inheritedPermissionsDisabled:b isAppAuthorized:b kind:s
  labelInfo:@FileLabelInfo lastModifyingUser:@User linkShareMetadata:@FileLinkShareMetadata md5Checksum:s mimeType:s
  modifiedByMe:b modifiedByMeTime:s modifiedTime:s name:s originalFilename:s ownedByMe:b owners:[@User parents:[s
  permissionIds:[s permissions:[@Permission properties:{s quotaBytesUsed:l resourceKey:s sha1Checksum:s
  sha256Checksum:s shared:b sharedWithMeTime:s sharingUser:@User shortcutDetails:@FileShortcutDetails size:l spaces:[s
  starred:b teamDriveId:s thumbnailLink:s thumbnailVersion:l trashed:b trashedTime:s trashingUser:@User version:l
  videoMediaMetadata:@FileVideoMediaMetadata viewedByMe:b viewedByMeTime:s viewersCanCopyContent:b webContentLink:s
  webViewLink:s writersCanShare:b
FileCapabilities canAcceptOwnership:b canAccessViaGenAi:b canAddChildren:b canAddFolderFromAnotherDrive:b
  canAddMyDriveParent:b canChangeCopyRequiresWriterPermission:b canChangeItemDownloadRestriction:b
  canChangeSecurityUpdateEnabled:b canChangeViewersCanCopyContent:b canComment:b canCopy:b canDelete:b
  canDeleteChildren:b canDisableInheritedPermissions:b canDownload:b canEdit:b canEnableInheritedPermissions:b
  canListChildren:b canModifyContent:b canModifyContentRestriction:b canModifyEditorContentRestriction:b
  canModifyLabels:b canModifyOwnerContentRestriction:b canMoveChildrenOutOfDrive:b canMoveChildrenOutOfTeamDrive:b
  canMoveChildrenWithinDrive:b canMoveChildrenWithinTeamDrive:b canMoveItemIntoTeamDrive:b canMoveItemOutOfDrive:b
  canMoveItemOutOfTeamDrive:b canMoveItemWithinDrive:b canMoveItemWithinTeamDrive:b canMoveTeamDriveItem:b
  canReadDrive:b canReadLabels:b canReadRevisions:b canReadTeamDrive:b canRemoveChildren:b
  canRemoveContentRestriction:b canRemoveMyDriveParent:b canRename:b canShare:b canStartApproval:b canTrash:b
  canTrashChildren:b canUntrash:b
FileContentHints indexableText:s thumbnail:@FileContentHintsThumbnail
FileContentHintsThumbnail image:s mimeType:s
FileImageMediaMetadata aperture:d cameraMake:s cameraModel:s colorSpace:s exposureBias:d exposureMode:s exposureTime:d
  flashUsed:b focalLength:d height:i isoSpeed:i lens:s location:@FileImageMediaMetadataLocation maxApertureValue:d
  meteringMode:s rotation:i sensor:s subjectDistance:i time:s whiteBalance:s width:i
FileImageMediaMetadataLocation altitude:d latitude:d longitude:d
FileLabelInfo labels:[@Label
FileLinkShareMetadata securityUpdateEligible:b securityUpdateEnabled:b
FileList files:[@File incompleteSearch:b kind:s nextPageToken:s
FileShortcutDetails targetId:s targetMimeType:s targetResourceKey:s
FileVideoMediaMetadata durationMillis:l height:i width:i
GenerateCseTokenResponse currentKaclsId:l currentKaclsName:s fileId:s jwt:s kind:s
GeneratedIds ids:[s kind:s space:s
Label fields:{@LabelField id:s kind:s revisionId:s
LabelField dateString:[s id:s integer:[l kind:s selection:[s text:[s user:[@User valueType:s
LabelFieldModification fieldId:s kind:s setDateValues:[s setIntegerValues:[l setSelectionValues:[s setTextValues:[s
  setUserValues:[s unsetValues:b
LabelList kind:s labels:[@Label nextPageToken:s
LabelModification fieldModifications:[@LabelFieldModification kind:s labelId:s removeLabel:b
ListAccessProposalsResponse accessProposals:[@AccessProposal nextPageToken:s
ModifyLabelsRequest kind:s labelModifications:[@LabelModification
ModifyLabelsResponse kind:s modifiedLabels:[@Label
Operation done:b error:@Status metadata:{* name:s response:{*
Permission allowFileDiscovery:b deleted:b displayName:s domain:s emailAddress:s expirationTime:s id:s
  inheritedPermissionsDisabled:b kind:s pendingOwner:b permissionDetails:[@PermissionPermissionDetails photoLink:s
  role:s teamDrivePermissionDetails:[@PermissionTeamDrivePermissionDetails type:s view:s
PermissionList kind:s nextPageToken:s permissions:[@Permission
PermissionPermissionDetails inherited:b inheritedFrom:s permissionType:s role:s
PermissionTeamDrivePermissionDetails inherited:b inheritedFrom:s role:s teamDrivePermissionType:s
ReassignApprovalRequest addReviewers:[@AddReviewer message:s replaceReviewers:[@ReplaceReviewer
ReplaceReviewer addedReviewerEmail:s removedReviewerEmail:s
Reply action:s assigneeEmailAddress:s author:@User content:s createdTime:s deleted:b htmlContent:s id:s kind:s
  mentionedEmailAddresses:[s modifiedTime:s
ReplyList kind:s nextPageToken:s replies:[@Reply
ResolveAccessProposalRequest action:=E2 role:[s sendNotification:b view:s
ReviewerResponse kind:s response:=E3 reviewer:@User
Revision exportLinks:{s id:s keepForever:b kind:s lastModifyingUser:@User md5Checksum:s mimeType:s modifiedTime:s
  originalFilename:s publishAuto:b published:b publishedLink:s publishedOutsideDomain:b size:l
RevisionList kind:s nextPageToken:s revisions:[@Revision
StartApprovalRequest dueTime:s fileContentChangeBehavior:=E0 lockFile:b message:s reviewerEmails:[s
StartPageToken kind:s startPageToken:s
Status code:i details:[{* message:s
TeamDrive backgroundImageFile:@TeamDriveBackgroundImageFile backgroundImageLink:s capabilities:@TeamDriveCapabilities
  colorRgb:s createdTime:s id:s kind:s name:s orgUnitId:s restrictions:@TeamDriveRestrictions themeId:s
TeamDriveBackgroundImageFile id:s width:d xCoordinate:d yCoordinate:d
TeamDriveCapabilities canAddChildren:b canChangeCopyRequiresWriterPermissionRestriction:b
  canChangeDomainUsersOnlyRestriction:b canChangeDownloadRestriction:b
  canChangeSharingFoldersRequiresOrganizerPermissionRestriction:b canChangeTeamDriveBackground:b
  canChangeTeamMembersOnlyRestriction:b canComment:b canCopy:b canDeleteChildren:b canDeleteTeamDrive:b canDownload:b
  canEdit:b canListChildren:b canManageMembers:b canReadRevisions:b canRemoveChildren:b canRename:b
  canRenameTeamDrive:b canResetTeamDriveRestrictions:b canShare:b canTrashChildren:b
TeamDriveList kind:s nextPageToken:s teamDrives:[@TeamDrive
TeamDriveRestrictions adminManagedRestrictions:b copyRequiresWriterPermission:b domainUsersOnly:b
  downloadRestriction:@DownloadRestriction sharingFoldersRequiresOrganizerPermission:b teamMembersOnly:b
User displayName:s emailAddress:s kind:s me:b permissionId:s photoLink:s
"""

ENUMS = """
E0 FILE_CONTENT_CHANGE_BEHAVIOR_UNSPECIFIED RESET_APPROVAL NO_APPROVAL_ACTION
E1 STATUS_UNSPECIFIED IN_PROGRESS APPROVED CANCELLED DECLINED
E2 ACTION_UNSPECIFIED ACCEPT DENY
E3 RESPONSE_UNSPECIFIED NO_RESPONSE APPROVED DECLINED
"""
